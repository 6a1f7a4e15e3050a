"""From a hydra config of `data_prep/` to a built dataset: what every script there has in common."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

from verl_sql.database.catalog import DatabaseNotFound
from verl_sql.dataset.build import Dataset, build_dataset
from verl_sql.dataset.example import Example
from verl_sql.dataset.filters.errata import ErrataFilter
from verl_sql.dataset.readers.records import MissingField
from verl_sql.dataset.settings import settings_from
from verl_sql.dataset.spreading.job import SpreadError
from verl_sql.generation.asked import AskingError

Reader = Callable[[Path, str], Iterable[Example]]
FAULTS = (AskingError, DatabaseNotFound, FileNotFoundError, MissingField, SpreadError, ValueError)
FileFinder = Callable[[Path, str], tuple[Path, ...]]


def prepare_dataset(
    config: DictConfig, name: str, description: str, read: Reader, files: FileFinder, has_databases: bool = True
) -> dict[str, Any]:
    """Build the dataset that a config describes and print what was kept.

    Args:
        config: the keys of `data_prep/conf/base.yaml`.
        name: the dataset's name.
        description: its source and licence, for the card.
        read: (folder, split) -> its examples.
        files: (folder, split) -> its question files.
        has_databases: False for a dataset whose schemas stand in its records.

    Raises:
        SystemExit: something the user must change, in one sentence.
    """
    try:
        dataset = _dataset(config, name, description, read, files, has_databases)
        settings = settings_from(OmegaConf.to_container(config.settings, resolve=True))  # type: ignore[arg-type]
        report = build_dataset(dataset, settings, config.out, config.workers, config.ray_address)
    except FAULTS as error:
        raise SystemExit(f"{name}: {error}") from error
    for line in summary_lines(report, config.out):
        print(line)
    return report


def summary_lines(report: Mapping[str, Any], out: str) -> list[str]:
    """What was kept and dropped, a line a split."""
    lines = []
    for split, counts in report["splits"].items():
        dropped = ", ".join(f"{reason} {entry['count']}" for reason, entry in counts["dropped"].items()) or "none"
        flagged = ", ".join(f"{reason} {entry['count']}" for reason, entry in counts["flagged"].items()) or "none"
        kept, questions = counts["kept"], counts["questions"]
        lines.append(f"{split}: {kept} of {questions} kept; dropped: {dropped}; flagged: {flagged}")
    return [*lines, f"written to {out}"]


def _dataset(
    config: DictConfig, name: str, description: str, read: Reader, files: FileFinder, has_databases: bool
) -> Dataset:
    """The dataset in the config's folder."""
    if not config.source:
        raise ValueError("give the dataset's folder: source=…")
    source = Path(config.source).expanduser()
    splits = list(config.splits)
    return Dataset(
        name=name,
        description=description,
        splits={split: _reader(read, source, split) for split in splits},
        files=tuple(file for split in splits for file in files(source, split)),
        db_root=Path(config.db_root or source).expanduser() if has_databases else None,
        tables=Path(config.tables).expanduser() if config.tables else None,
        errata=_errata(config.get("errata")),
    )


def _reader(read: Reader, source: Path, split: str) -> Callable[[], Iterable[Example]]:
    """A reader of one split, which starts from the beginning each time."""
    return lambda: read(source, split)


def _errata(config: DictConfig | None) -> dict[str, ErrataFilter]:
    """Split -> known errors, from `errata.<split>.file` and `errata.<split>.lists`."""
    return {str(split): ErrataFilter.from_file(c.file, c.get("lists")) for split, c in (config or {}).items() if c.file}
