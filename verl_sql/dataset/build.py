"""Build a dataset folder: `<split>.parquet`, `report.json`, `DATASET_CARD.md`, `golds.jsonl` where golds were run.

Work is done in parts that are written whole or not at all, under `.parts/`; the same command after a kill takes them
up and ends with the same bytes as an undisturbed run, the seconds in `golds.jsonl` apart. Memory is bounded by one part
and by the duplicate filter's keys.
"""

import json
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import jinja2
from tqdm import tqdm

from verl_sql.database.catalog import Catalog
from verl_sql.dataset.candidate import Candidate
from verl_sql.dataset.example import Example
from verl_sql.dataset.filters.duplicates import DuplicateFilter
from verl_sql.dataset.filters.errata import ErrataFilter
from verl_sql.dataset.gold_record import GOLDS, merge_golds
from verl_sql.dataset.parquet import RL_SCHEMA, rl_row, write_rows
from verl_sql.dataset.prepare import Prepared, from_json
from verl_sql.dataset.prepare_job import PrepareJob
from verl_sql.dataset.prompting import PROMPT_FOLDER
from verl_sql.dataset.reasons import Finding, Reason, meanings
from verl_sql.dataset.report import PAPER_COUNTS, PAPER_DROPS, SplitReport
from verl_sql.dataset.sampling import stratified_sample, stratum_of
from verl_sql.dataset.settings import Settings
from verl_sql.dataset.spreading.spread import spread

PART_SIZE = 256
PARTS_WORTH_A_PROCESS = 4
"""A process takes 0.7 s to start, a part 0.3 s."""


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


def build_dataset(
    dataset: Dataset, settings: Settings, out: str | Path, workers: int | None = None, ray_address: str | None = None
) -> dict[str, Any]:
    """Prepare every split of `dataset` into the folder `out`.

    Args:
        dataset: what to read.
        settings: what to do with it.
        out: the folder; made if it is not there.
        workers: processes that work at once, all cores by default.
        ray_address: of a Ray cluster to spread the work over; this machine alone by default.

    Returns:
        The content of report.json.

    Raises:
        DatabaseNotFound: the database root is not a folder.
        FileNotFoundError: a split's questions or the prompt template are not there.
        AskingError: a model that the settings name is not there, or gives nothing usable.
        SpreadError: there is no cluster, or a process ended.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    if dataset.db_root is not None:
        Catalog(dataset.db_root)
    fingerprint = settings.fingerprint(dataset.name, *(_identity(file) for file in dataset.files))
    parts = folder / ".parts" / fingerprint
    job = PrepareJob(settings, dataset.db_root, dataset.tables).anywhere()
    duplicates = DuplicateFilter()
    reports: dict[str, Any] = {}
    for split, read in dataset.splits.items():
        candidates = _candidates(_selected(read(), settings), duplicates, dataset.errata.get(split))
        work = _Split(parts / split, split, job, PAPER_DROPS if dataset.name == "bird" else {})
        work.decide(candidates, workers, ray_address)
        reports[split] = work.write(folder / f"{split}.parquet")
    if dataset.db_root is not None:
        merge_golds([g for split in dataset.splits for g in sorted(parts.glob(f"{split}/*.golds"))], folder / GOLDS)
    report = {"dataset": dataset.name, "settings": _plain(settings), "splits": reports, "papers": PAPER_COUNTS}
    _write_text(folder / "report.json", json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    _write_text(folder / "DATASET_CARD.md", _card(dataset, report))
    shutil.rmtree(folder / ".parts", ignore_errors=True)
    return report


class _Split:
    """One split on its way from candidates through parts to a parquet file."""

    def __init__(self, folder: Path, name: str, job: PrepareJob, papers: Mapping[Reason, str]) -> None:
        self.folder, self.name, self.job, self.papers = folder, name, job, papers
        self.settings = job.settings
        self.parts: list[Path] = []
        self._open: deque[tuple[Path, int]] = deque()

    def decide(self, candidates: Iterator[Candidate], workers: int | None, ray_address: str | None) -> None:
        """Decide what is not decided yet; decisions are written in the order of the parts."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with tqdm(desc=self.name, unit=" questions", disable=None) as bar:
            undecided = self._undecided(candidates, bar)
            for decisions, golds in spread(self.job, undecided, workers, ray_address, PARTS_WORTH_A_PROCESS):
                file, size = self._open.popleft()
                _write_text(file.with_suffix(".golds"), golds)
                _write_text(file, decisions)
                bar.update(size)

    def _undecided(self, candidates: Iterator[Candidate], bar: tqdm) -> Iterator[list[Candidate]]:
        """The parts that no earlier run has left a file of."""
        for number in count():
            batch = list(islice(candidates, PART_SIZE))
            if not batch:
                return
            file = self.folder / f"{number:06d}.jsonl"
            self.parts.append(file)
            if file.is_file():
                bar.update(len(batch))
            else:
                self._open.append((file, len(batch)))
                yield batch

    def write(self, target: Path) -> dict[str, Any]:
        """Write the parquet; the split's report."""
        report = SplitReport(self.settings.unit, self.papers)
        write_rows(target, self._rows(report), RL_SCHEMA)
        return report.as_dict()

    def _rows(self, report: SplitReport) -> Iterator[dict[str, Any]]:
        """The rows of the kept examples, counted into the report on the way."""
        sample = self._sample()
        for prepared in _decisions(self.parts):
            if sample is not None and prepared.prompt is not None and prepared.example.question_id not in sample:
                prepared = replace(prepared, prompt=None, dropped=Finding(Reason.NOT_SAMPLED))
            report.add(prepared)
            if prepared.prompt is not None:
                yield rl_row(prepared.example, prepared.prompt, report.kept - 1)

    def _sample(self) -> set[str] | None:
        """Ids of the stratified sample; None when all are to be kept."""
        settings = self.settings
        if settings.sample_size is None or self.name not in settings.train_splits:
            return None
        kept = (p.example for p in _decisions(self.parts) if p.prompt is not None)
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
