"""Build a dataset folder: `<split>.parquet`, `report.json`, `DATASET_CARD.md`, `golds.jsonl` where golds were run.

Work is done in parts that are written whole or not at all, under `.parts/`; the same command after a kill takes them
up and ends with the same bytes as an undisturbed run, the seconds in `golds.jsonl` apart. Memory is bounded by one part
and by the duplicate filter's keys.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import jinja2
from tqdm import tqdm

from verl_sql.database.catalog import Catalog
from verl_sql.database.executor import Executor
from verl_sql.dataset.example import Example
from verl_sql.dataset.filters.duplicates import DuplicateFilter
from verl_sql.dataset.filters.errata import ErrataFilter
from verl_sql.dataset.gold_record import GOLDS, merge_golds
from verl_sql.dataset.parquet import RL_SCHEMA, rl_row, write_rows
from verl_sql.dataset.prepare import Candidate, Preparation, Prepared, from_json, to_json
from verl_sql.dataset.prompting import PROMPT_FOLDER
from verl_sql.dataset.reasons import Finding, Reason, meanings
from verl_sql.dataset.report import PAPER_COUNTS, SplitReport
from verl_sql.dataset.sampling import stratified_sample, stratum_of
from verl_sql.dataset.settings import Settings
from verl_sql.dataset.tables_json import read_tables

PART_SIZE = 256


@dataclass(frozen=True, slots=True)
class Dataset:
    """What to build.

    Attributes:
        name: the dataset's name, for the card.
        description: one or two sentences for the card: source, licence.
        splits: split -> a function that reads its examples from the beginning.
        files: the question files, whose change makes earlier work invalid.
        db_root: the folder of databases; None for a dataset without.
        tables: a `tables.json`, for questions whose database is not there.
        errata: split -> known errors.
    """

    name: str
    description: str
    splits: Mapping[str, Callable[[], Iterable[Example]]]
    files: tuple[Path, ...] = ()
    db_root: Path | None = None
    tables: Path | None = None
    errata: Mapping[str, ErrataFilter] = field(default_factory=dict)


def build_dataset(dataset: Dataset, settings: Settings, out: str | Path, workers: int | None = None) -> dict[str, Any]:
    """Prepare every split of `dataset` into the folder `out`.

    Args:
        dataset: what to read.
        settings: what to do with it.
        out: the folder; made if it is not there.
        workers: worker processes for the golds, all cores by default.

    Returns:
        The content of report.json.

    Raises:
        DatabaseNotFound: the database root is not a folder.
        FileNotFoundError: a split's questions or the prompt template are not there.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    catalog = Catalog(dataset.db_root) if dataset.db_root is not None else None
    schemas = read_tables(dataset.tables) if dataset.tables else {}
    fingerprint = settings.fingerprint(dataset.name, *(_identity(file) for file in dataset.files))
    parts = folder / ".parts" / fingerprint
    duplicates = DuplicateFilter()
    reports: dict[str, Any] = {}
    with ExitStack() as stack:
        executor = stack.enter_context(Executor(workers, settings.timeout))
        preparation = Preparation(settings, catalog, executor, schemas)
        for split, read in dataset.splits.items():
            candidates = _candidates(_selected(read(), settings), duplicates, dataset.errata.get(split))
            work = _Split(parts / split, preparation, split)
            reports[split] = work.write(candidates, folder / f"{split}.parquet")
    if catalog is not None:
        merge_golds([g for split in dataset.splits for g in sorted(parts.glob(f"{split}/*.golds"))], folder / GOLDS)
    report = {"dataset": dataset.name, "settings": _plain(settings), "splits": reports, "papers": PAPER_COUNTS}
    _write_text(folder / "report.json", json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    _write_text(folder / "DATASET_CARD.md", _card(dataset, report))
    shutil.rmtree(folder / ".parts", ignore_errors=True)
    return report


class _Split:
    """One split on its way from candidates through parts to a parquet file."""

    def __init__(self, parts: Path, preparation: Preparation, name: str) -> None:
        self.parts = parts
        self.preparation = preparation
        self.name = name

    def write(self, candidates: Iterator[Candidate], target: Path) -> dict[str, Any]:
        """Decide what is not decided yet, then write the parquet; the split's report."""
        self.parts.mkdir(parents=True, exist_ok=True)
        parts = list(self._parts(candidates))
        report = SplitReport(self.preparation.unit)
        write_rows(target, self._rows(parts, report), RL_SCHEMA)
        return report.as_dict()

    def _parts(self, candidates: Iterator[Candidate]) -> Iterator[Path]:
        """The files of decisions, in order; one that an earlier run left is kept as it is."""
        with tqdm(desc=self.name, unit=" questions", disable=None) as bar:
            for number in count():
                batch = list(islice(candidates, PART_SIZE))
                if not batch:
                    return
                file = self.parts / f"{number:06d}.jsonl"
                if not file.is_file():
                    self._decide(batch, file)
                yield file
                bar.update(len(batch))

    def _decide(self, batch: list[Candidate], file: Path) -> None:
        """Write the decisions about a batch, after what its golds gave."""
        decided = self.preparation.decide(batch)
        _write_text(file.with_suffix(".golds"), self.preparation.golds.record.take())
        _write_text(file, "".join(f"{to_json(p)}\n" for p in decided))

    def _rows(self, parts: list[Path], report: SplitReport) -> Iterator[dict[str, Any]]:
        """The rows of the kept examples, counted into the report on the way."""
        sample = self._sample(parts)
        for prepared in _decisions(parts):
            if sample is not None and prepared.prompt is not None and prepared.example.question_id not in sample:
                prepared = replace(prepared, prompt=None, dropped=Finding(Reason.NOT_SAMPLED))
            report.add(prepared)
            if prepared.prompt is not None:
                yield rl_row(prepared.example, prepared.prompt, report.kept - 1)

    def _sample(self, parts: list[Path]) -> set[str] | None:
        """Ids of the stratified sample; None when all are to be kept."""
        settings = self.preparation.settings
        if settings.sample_size is None or self.name not in settings.train_splits:
            return None
        kept = (p.example for p in _decisions(parts) if p.prompt is not None)
        members = ((e.question_id, stratum_of(e, settings.sample_by)) for e in kept)
        return stratified_sample(members, settings.sample_size, settings.sample_seed)


def _decisions(parts: list[Path]) -> Iterator[Prepared]:
    """Every decision in the files of parts, one in memory at a time."""
    for file in parts:
        with file.open(encoding="utf-8") as lines:
            yield from map(from_json, lines)


def _selected(examples: Iterable[Example], settings: Settings) -> Iterator[Example]:
    """The examples that the settings ask for."""
    wanted = (e for e in examples if not settings.databases or e.db_id in settings.databases)
    return islice(wanted, settings.limit)


def _candidates(
    examples: Iterable[Example], duplicates: DuplicateFilter, errata: ErrataFilter | None
) -> Iterator[Candidate]:
    """Candidates with what can be found without a database; read again on every run, so that its memory is whole."""
    for example in examples:
        known = errata.findings(example) if errata else []
        yield Candidate(example).with_findings([*known, *duplicates.findings(example)])


def _identity(file: Path) -> str:
    """What changes when a file does."""
    status = file.stat()
    return f"{file.name}:{status.st_size}:{status.st_mtime_ns}"


def _plain(settings: Settings) -> dict[str, Any]:
    """The settings as JSON values."""
    return json.loads(json.dumps(asdict(settings), default=str))


def _card(dataset: Dataset, report: Mapping[str, Any]) -> str:
    """The text of DATASET_CARD.md."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=True)
    template = environment.from_string((PROMPT_FOLDER / "dataset_card.jinja").read_text(encoding="utf-8"))
    return template.render(
        name=dataset.name,
        description=dataset.description,
        splits=report["splits"],
        settings=report["settings"],
        papers=report["papers"] if dataset.name == "bird" else {},
        meanings=meanings(),
    )


def _write_text(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    partial = file.with_name(f".{file.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, file)
