"""Step labels on disk: written block by block, so that a run that was killed goes on and ends in the same bytes."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from verl_sql.prm.labels import LabelCounts, LabelQuestion, Record

NEEDED = frozenset({"question", "text", "outcome_text", "steps", "outcome"})
"""What a record must hold to be trained on."""

Labeller = Callable[[Sequence[LabelQuestion]], tuple[list[Record], LabelCounts]]


def write_labels(
    out: Path,
    questions: Sequence[LabelQuestion],
    block: int,
    settings: dict[str, Any],
    make_labeller: Callable[[], Labeller],
) -> dict[str, Any]:
    """Label all questions into `out`, and a report beside it.

    Args:
        out: the JSON lines to write; `<stem>.report.json` beside it, and `<stem>.parts/` until all is done.
        questions: in the order they are labelled.
        block: questions that are labelled and written at once.
        settings: all that the labels depend on; a file of other settings is not continued.
        make_labeller: loads the policy; called only if something is left to do.

    Returns:
        The report: settings and counts.

    Raises:
        ValueError: there are no questions, or `out` or its parts are of other settings.
        SamplingError: the policy gave no completions.
    """
    if not questions:
        raise ValueError("no question to label")
    report_file, parts = out.with_suffix(".report.json"), out.with_suffix(".parts")
    told = json.loads(json.dumps({**settings, "block": block, "questions": len(questions)}, default=str))
    if out.is_file() and report_file.is_file():
        report: dict[str, Any] = json.loads(report_file.read_text(encoding="utf-8"))
        _check_same(report["settings"], told, out)
        return report
    parts.mkdir(parents=True, exist_ok=True)
    if (parts / "settings.json").is_file():
        _check_same(json.loads((parts / "settings.json").read_text(encoding="utf-8")), told, parts)
    _write(parts / "settings.json", json.dumps(told))
    blocks = [questions[start : start + block] for start in range(0, len(questions), block)]
    _label_blocks(parts, blocks, make_labeller)
    report = {"settings": told, "counts": _counts(parts, len(blocks)).as_dict()}
    _join(parts, len(blocks), out)
    _write(report_file, json.dumps(report, indent=1) + "\n")
    shutil.rmtree(parts)
    return report


def _label_blocks(
    parts: Path, blocks: Sequence[Sequence[LabelQuestion]], make_labeller: Callable[[], Labeller]
) -> None:
    """Label the blocks that are not there yet."""
    left = [number for number in range(len(blocks)) if not _part(parts, number).is_file()]
    if not left:
        return
    labeller, done = make_labeller(), sum(map(len, blocks)) - sum(len(blocks[number]) for number in left)
    total = sum(map(len, blocks))
    with tqdm(desc="prm labels", unit=" questions", initial=done, total=total, mininterval=5.0) as bar:
        for number in left:
            records, counts = labeller(blocks[number])
            lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
            _write(_counts_file(parts, number), json.dumps(_plain(counts)))
            _write(_part(parts, number), lines)  # last: a block is there once its lines are
            bar.update(len(blocks[number]))


def read_labels(file: Path) -> Iterator[Record]:
    """The records of a labels' file.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a line is no record.
    """
    if not file.is_file():
        raise FileNotFoundError(f"no step labels {file}; make them with data_prep/prm_labels.py")
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            record = json.loads(line)
            if (
                not isinstance(record, dict)
                or not {"question", "text", "outcome_text", "steps", "outcome"} <= record.keys()
            ):
                raise ValueError(f"{file}, line {number}: no record of step labels")
            yield record


def _part(parts: Path, number: int) -> Path:
    return parts / f"{number:06d}.jsonl"


def _counts_file(parts: Path, number: int) -> Path:
    return parts / f"{number:06d}.counts.json"


def _plain(counts: LabelCounts) -> dict[str, Any]:
    """Counts as they can be added up again."""
    return {
        "questions": counts.questions,
        "chains": counts.chains,
        "right": counts.right,
        "plain": counts.plain,
        "spent": counts.spent,
        "left_out": counts.left_out,
        "steps": {str(position): kinds for position, kinds in counts.steps.items()},
    }


def _counts(parts: Path, blocks: int) -> LabelCounts:
    """The counts of all blocks together."""
    total = LabelCounts()
    for number in range(blocks):
        own = json.loads(_counts_file(parts, number).read_text(encoding="utf-8"))
        total.questions += own["questions"]
        total.chains += own["chains"]
        total.right += own["right"]
        total.plain += own["plain"]
        total.spent.update(own["spent"])
        total.left_out.update(own["left_out"])
        for position, kinds in own["steps"].items():
            total.steps.setdefault(int(position), Counter()).update(kinds)
    return total


def _join(parts: Path, blocks: int, out: Path) -> None:
    """All blocks as one file, whole or not at all."""
    partial = out.with_name(f".{out.name}.partial")
    with partial.open("wb") as whole:
        for number in range(blocks):
            with _part(parts, number).open("rb") as part:
                shutil.copyfileobj(part, whole)
    os.replace(partial, out)


def _check_same(known: dict[str, Any], wanted: dict[str, Any], where: Path) -> None:
    """Raise when what is there was made with other settings."""
    if known != wanted:
        raise ValueError(f"{where} was made with other settings: name another file, or delete it")


def _write(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    partial = file.with_name(f".{file.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, file)
