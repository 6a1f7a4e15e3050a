"""Lines of a verl rollout dump (`trainer.rollout_data_dir`, `trainer.validation_data_dir`).

verl writes one JSON object a line: `input` (the prompt's text), `output`, `gts`, `score`, `step`, and what the reward
function returned. The database is not among them: it is read off the M-Schema head in the prompt, or given.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_DB_ID = re.compile(r"【DB_ID】\s*(.+)")


@dataclass(frozen=True, slots=True)
class DumpLine:
    """One rollout.

    Attributes:
        number: line in the file, from 1.
        completion: the policy's output.
        gold: the gold SQL.
        db_id: the database, empty when the line does not say.
        score: the score in the dump, None when it has none.
        group: what the rollouts of one question in one step share.
        extra_info: what the reward function needs beside them.
    """

    number: int
    completion: str
    gold: str
    db_id: str
    score: float | None
    group: tuple[Any, ...]
    extra_info: dict[str, Any]


class BadDump(ValueError):
    """A line that is no rollout; the message names it."""


def read_dump(path: Path, db_id: str | None = None) -> Iterator[DumpLine]:
    """Every rollout of a dump.

    Args:
        path: the JSONL file.
        db_id: database of every line that names none.

    Raises:
        BadDump: a line is not JSON or lacks `output` or `gts`.
    """
    with path.open(encoding="utf-8") as file:
        for number, text in enumerate(file, 1):
            if text.strip():
                yield _line(number, text, db_id)


def _line(number: int, text: str, db_id: str | None) -> DumpLine:
    """One line read."""
    try:
        row = json.loads(text)
        completion, gold = row["output"], row["gts"]
    except (ValueError, KeyError, TypeError) as error:
        raise BadDump(f"line {number} is no rollout with `output` and `gts`: {error!r}") from error
    prompt = str(row.get("input") or "")
    extra = row.get("extra_info") if isinstance(row.get("extra_info"), dict) else {}
    found = _DB_ID.search(prompt)
    named = row.get("db_id") or extra.get("db_id") or (found.group(1).strip() if found else "") or db_id or ""
    score = row.get("score")
    group = (row.get("step"), row.get("uid") or prompt or (named, gold))
    return DumpLine(
        number, str(completion), str(gold), str(named), None if score is None else float(score), group,
        {**extra, "db_id": str(named)},
    )  # fmt: skip
