"""What a recipe leaves behind: the files of a run directory, read; docs/evaluation.md describes the layout."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class IncompleteRunError(ValueError):
    """A run directory that lacks something; the message is one sentence that says what."""


@dataclass(frozen=True, slots=True)
class MetricsLine:
    """What verl logged at one step; numbers only."""

    step: int
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """A finished run.

    Attributes:
        path: the folder.
        about: `run.json`: recipe, profile, seed, model, settings, evaluation_files, note.
        seconds: of each stage, in order; a stage that ran twice is summed.
        metrics: verl's metrics, by step.
        dumps: validation dumps, by step; the first is that of step 0.
        evaluation_files: the parquet files of `run.json`, as paths that exist.
    """

    path: Path
    about: Mapping[str, Any]
    seconds: Mapping[str, float]
    metrics: tuple[MetricsLine, ...]
    dumps: Mapping[int, Path]
    evaluation_files: tuple[Path, ...]


REQUIRED_KEYS = ("recipe", "profile", "evaluation_files")


def open_run(path: Path) -> RunDirectory:
    """Read a run directory.

    Raises:
        IncompleteRunError: a file is missing or is not what it should be.
    """
    if not path.is_dir():
        raise IncompleteRunError(f"there is no run directory {path}")
    about = _about(path / "run.json")
    metrics, dumps = read_metrics(path / "metrics.jsonl"), _dumps(path / "validation")
    trained = max((line.step for line in metrics), default=0)
    if trained > max(dumps):
        raise IncompleteRunError(f"{path} is not a complete run: no validation/{trained}.jsonl after its last step")
    return RunDirectory(
        path=path,
        about=about,
        seconds=_seconds(path / "stages.jsonl"),
        metrics=metrics,
        dumps=dumps,
        evaluation_files=tuple(_existing(path, name) for name in about["evaluation_files"]),
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise IncompleteRunError(f"{path.parent} is not a complete run: it has no {path.name}") from None


def _about(path: Path) -> dict[str, Any]:
    """run.json, with the keys that a summary cannot do without."""
    text = _text(path)
    try:
        about = json.loads(text)
    except ValueError as error:
        raise IncompleteRunError(f"{path} is no JSON: {error}") from None
    missing = [key for key in REQUIRED_KEYS if not isinstance(about, dict) or not about.get(key)]
    if missing:
        raise IncompleteRunError(f"{path} does not say {missing[0]!r}")
    return dict(about)


def _lines(path: Path) -> list[dict[str, Any]]:
    """A file of JSON objects, one a line."""
    found: list[dict[str, Any]] = []
    for number, line in enumerate(_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if not isinstance(row, dict):
            raise IncompleteRunError(f"{path} line {number} is no JSON object")
        found.append(row)
    return found


def _seconds(path: Path) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for number, row in enumerate(_lines(path), 1):
        if "stage" not in row or not isinstance(row.get("seconds"), (int, float)):
            raise IncompleteRunError(f"{path} line {number} does not name a stage and its seconds")
        seconds[row["stage"]] = seconds.get(row["stage"], 0.0) + row["seconds"]
    return seconds


def read_metrics(path: Path) -> tuple[MetricsLine, ...]:
    """verl's file logger: `{"step": 3, "data": {name: number}}` a line; NaN is written as null and left out here.

    Raises:
        IncompleteRunError: there is no such file, or a line is none of these.
    """
    found = []
    for number, row in enumerate(_lines(path), 1):
        if not isinstance(row.get("step"), int) or not isinstance(row.get("data"), dict):
            raise IncompleteRunError(f"{path} line {number} is not one of verl's file logger: step and data")
        found.append(MetricsLine(row["step"], {k: float(v) for k, v in row["data"].items() if _is_number(v)}))
    return tuple(sorted(found, key=lambda line: line.step))


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _dumps(folder: Path) -> dict[int, Path]:
    """The validation dumps by step, that before training and one after it among them."""
    steps = sorted(int(path.stem) for path in folder.glob("*.jsonl") if path.stem.isdigit())
    if 0 not in steps:
        raise IncompleteRunError(f"{folder.parent} is not a complete run: no validation/0.jsonl before training")
    if len(steps) == 1:
        raise IncompleteRunError(f"{folder.parent} is not a complete run: no validation/<step>.jsonl after training")
    return {step: folder / f"{step}.jsonl" for step in steps}


def _existing(run: Path, name: str) -> Path:
    """An evaluation file: absolute, relative to the run directory, or to the working directory."""
    for candidate in (run / name, Path(name)):
        if candidate.is_file():
            return candidate
    raise IncompleteRunError(f"the evaluation file {name} of {run / 'run.json'} does not exist")
