"""Prepared parquet in, the same parquet with chains of CTEs out, and a report of what became of every question.

Work is kept in parts that are written whole or not at all, so that a conversion that was killed goes on where it
stopped and ends with the same bytes.
"""

import hashlib
import json
import os
import shutil
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from verl_sql.database.catalog import Catalog, DatabaseNotFound
from verl_sql.database.executor import Executor
from verl_sql.dataset.cocte.diversity import diverse, kept_at
from verl_sql.dataset.cocte.llm import ChainWriter
from verl_sql.dataset.cocte.reasons import ChainOutcome
from verl_sql.dataset.cocte.settings import THRESHOLDS, ChainSettings
from verl_sql.dataset.cocte.verify import Conversion, conversion_from, convert_all, verify_chains
from verl_sql.dataset.parquet import RL_SCHEMA, missing_columns, read_rows, write_rows
from verl_sql.dataset.spreading.spread import spread

PART = 128
Row = dict[str, Any]


def convert_file(
    source: Path,
    out: Path,
    db_root: Path | None,
    settings: ChainSettings,
    workers: int | None = None,
    ray_address: str | None = None,
) -> dict[str, Any]:
    """Give the questions of a prepared parquet their chains.

    Rows that have a chain keep it. `extra_info.gold_chain` gets the first chain that holds, and
    `extra_info.details.more_chains` the others that the diversity filter keeps.

    Args:
        source: a parquet in RL_SCHEMA.
        out: the parquet to write; `<stem>.cocte.json` beside it is the report.
        db_root: folder of the databases; None takes VERL_SQL_DB_ROOT.
        settings: what to do.
        workers: processes that work at once; None takes all cores.
        ray_address: of a Ray cluster to spread the work over; None stays on this machine.

    Returns:
        The report.

    Raises:
        FileNotFoundError: there is no `source`.
        ValueError: `source` is no prepared parquet.
        DatabaseNotFound: there is no such root.
        SpreadError: there is no cluster, or a process ended.
    """
    if not source.is_file():
        raise FileNotFoundError(f"no parquet {source}; prepare one with data_prep first")
    if missing := missing_columns(source, RL_SCHEMA):
        raise ValueError(f"{source} is no prepared parquet: {', '.join(missing)} missing or of another type")
    root = db_root or os.environ.get("VERL_SQL_DB_ROOT")
    if not root:
        raise DatabaseNotFound("no folder of databases: give db_root=… or set VERL_SQL_DB_ROOT")
    Catalog(root)
    parts = out.parent / ".cocte" / _fingerprint(source, settings)
    report = _Report()
    files = _decide(source, parts, ConvertJob(settings, Path(root).absolute()), workers, ray_address)
    write_rows(out, _converted(source, files, settings, report), RL_SCHEMA)
    written = {"source": source.name, "settings": settings.as_dict(), **report.as_dict()}
    _write(out.with_suffix(".cocte.json"), json.dumps(written, indent=1, ensure_ascii=False) + "\n")
    shutil.rmtree(parts.parent, ignore_errors=True)
    return written


class _Converter:
    """Turns a part's rows into what became of them."""

    def __init__(self, catalog: Catalog, executor: Executor, settings: ChainSettings) -> None:
        self.catalog, self.executor, self.settings = catalog, executor, settings
        self.writer = ChainWriter(settings.llm) if settings.llm.base_url else None

    def decide(self, rows: Sequence[Row]) -> list[dict[str, Any]]:
        """For each row its conversion and every chain that holds, as plain values."""
        databases = [self._database(row) for row in rows]
        decided = [self._before(row, database) for row, database in zip(rows, databases, strict=True)]
        open_ones = [i for i, found in enumerate(decided) if found is None]
        if self.settings.rules:
            queries = [(databases[i] or Path(), _gold(rows[i])) for i in open_ones]
            for i, found in zip(open_ones, convert_all(queries, self.executor), strict=True):
                decided[i] = found
        results = [found or Conversion(ChainOutcome.UNSUPPORTED, detail="no rules") for found in decided]
        chains = [[found.chain] if found.converted else [] for found in results]
        written = self._write_chains(rows, databases, results, chains) if self.writer else {}
        return [
            {"conversion": found.as_dict(), "chains": kept, "written": written.get(i, {})}
            for i, (found, kept) in enumerate(zip(results, chains, strict=True))
        ]

    def _write_chains(
        self, rows: Sequence[Row], databases: Sequence[Path | None], results: list[Conversion], chains: list[list[str]]
    ) -> dict[int, dict[str, int]]:
        """Let the LLM write chains, keep those that hold; by row, how its completions fared."""
        wanted = [
            i
            for i, found in enumerate(results)
            if databases[i] is not None
            and found.outcome not in (ChainOutcome.KEPT, ChainOutcome.GOLD_FAILS)
            and (self.settings.llm.rows == "all" or not found.converted)
        ]
        asked = [(databases[i] or Path(), rows[i]["extra_info"], _gold(rows[i])) for i in wanted]
        texts = self.writer.write(asked) if self.writer else []
        tried = [(i, text) for i, found in zip(wanted, texts, strict=True) for text in found]
        checked = verify_chains([(databases[i] or Path(), _gold(rows[i]), text) for i, text in tried], self.executor)
        counts: dict[int, Counter[str]] = {i: Counter() for i in wanted}
        for (i, text), result in zip(tried, checked, strict=True):
            good = result.outcome is ChainOutcome.CHAIN
            counts[i][str(result.outcome)] += 1
            if good:
                chains[i].append(text)
            if good and not results[i].converted:
                results[i] = result
        return {i: dict(count) for i, count in counts.items()}

    def _database(self, row: Row) -> Path | None:
        """The row's database file, or None."""
        try:
            return self.catalog.path(row["extra_info"]["db_id"])
        except DatabaseNotFound:
            return None

    @staticmethod
    def _before(row: Row, database: Path | None) -> Conversion | None:
        """What can be said of a row without trying."""
        if row["extra_info"]["gold_chain"]:
            return Conversion(ChainOutcome.KEPT, row["extra_info"]["gold_chain"])
        if database is None:
            return Conversion(ChainOutcome.NO_DATABASE, detail=f"no database {row['extra_info']['db_id']}")
        return None


@dataclass(frozen=True, slots=True)
class ConvertJob:
    """The conversion as a job that can be spread."""

    settings: ChainSettings
    db_root: Path

    @contextmanager
    def open(self, workers: int, hands: int) -> Iterator[Callable[[Sequence[Row]], list[dict[str, Any]]]]:
        """See `spreading.job.Job`."""
        llm = replace(self.settings.llm, concurrency=max(1, self.settings.llm.concurrency // hands))
        with Executor(workers, self.settings.timeout) as executor:
            yield _Converter(Catalog(self.db_root), executor, replace(self.settings, llm=llm)).decide


class _Report:
    """Counts, and every question without a chain by its id."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.steps: Counter[int] = Counter()
        self.depths: Counter[str] = Counter()
        self.written: Counter[str] = Counter()
        self.staged = self.short = self.empty = 0
        self.without: list[dict[str, str]] = []
        self.chains: dict[str, list[str]] = {}

    def add(self, info: Mapping[str, Any], found: Conversion, chains: list[str], written: Mapping[str, int]) -> None:
        """Count one question."""
        self.outcomes[str(found.outcome)] += 1
        self.written.update(written)
        if chains:
            self.chains[f"{info['index']}/{info['question_id']}"] = chains
        if not found.converted:
            entry = {"question_id": info["question_id"], "db_id": info["db_id"]}
            self.without.append(entry | {"reason": str(found.outcome), "detail": found.detail})
            return
        if found.outcome is not ChainOutcome.KEPT:
            self.steps[found.steps] += 1
            self.depths[found.depth or "llm"] += 1
            self.staged += found.stages > 1
            self.short += found.stages > 1 and found.steps < 2
            self.empty += found.empty

    def as_dict(self) -> dict[str, Any]:
        """Everything, for the report's file."""
        return {
            "questions": sum(self.outcomes.values()),
            "outcomes": dict(sorted(self.outcomes.items())),
            "steps": {str(k): v for k, v in sorted(self.steps.items())},
            "depths": dict(sorted(self.depths.items())),
            "more_than_one_stage": self.staged,
            "more_than_one_stage_but_one_step": self.short,
            "verified_on_an_empty_result": self.empty,
            "llm_completions": dict(sorted(self.written.items())),
            "chains_kept_by_threshold": {str(t): n for t, n in kept_at(self.chains, THRESHOLDS).items()},
            "without_chain": self.without,
        }


def _decide(source: Path, parts: Path, job: ConvertJob, workers: int | None, ray_address: str | None) -> list[Path]:
    """The files of decisions, in the order of the rows; those that an earlier run left are kept as they are."""
    parts.mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    waiting: deque[Path] = deque()

    def undecided() -> Iterator[list[Row]]:
        for batch in _batches(source):
            files.append(parts / f"{len(files):06d}.json")
            if not files[-1].is_file():
                waiting.append(files[-1])
                yield batch

    with tqdm(desc=source.name, unit=" parts", disable=None) as bar:
        for decided in spread(job, undecided(), workers, ray_address):
            _write(waiting.popleft(), json.dumps(decided, ensure_ascii=False))
            bar.update()
    return files


def _batches(source: Path) -> Iterator[list[Row]]:
    """The rows of a parquet, a part at a time."""
    rows = read_rows(source)
    while batch := list(islice(rows, PART)):
        yield batch


def _converted(source: Path, files: Sequence[Path], settings: ChainSettings, report: _Report) -> Iterator[Row]:
    """The rows with their chains, counted on the way."""
    for file, batch in zip(files, _batches(source), strict=True):
        for row, values in zip(batch, json.loads(file.read_text(encoding="utf-8")), strict=True):
            found = conversion_from(values["conversion"])
            report.add(row["extra_info"], found, values["chains"], values["written"])
            yield _with_chains(row, diverse(values["chains"], settings.diversity))


def _with_chains(row: Row, chains: Sequence[str]) -> Row:
    """The row with its chains; untouched when it had one or has none."""
    info = row["extra_info"]
    if info["gold_chain"] or not chains:
        return row
    more = {"more_chains": list(chains[1:])} if len(chains) > 1 else {}
    details = json.dumps(json.loads(info["details"] or "{}") | more, ensure_ascii=False, sort_keys=True)
    return row | {"extra_info": info | {"gold_chain": chains[0], "details": details}}


def _gold(row: Row) -> str:
    """The row's gold query."""
    return row["reward_model"]["ground_truth"]


def _fingerprint(source: Path, settings: ChainSettings) -> str:
    """What changes when the source or the settings do."""
    state = source.stat()
    told = settings.as_dict() | {"diversity": None}
    text = json.dumps([source.name, state.st_size, state.st_mtime_ns, told], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _write(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    partial = file.with_name(f".{file.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, file)
