"""What counts as a judge's answer: one JSON object of the form asked for, its value in range, and nothing else."""

import json
import math
import re
from collections.abc import Callable
from typing import Any

from verl_sql.rewards.judge.prompts import JudgeKind

GRADES = {"very bad": 0.0, "bad": 0.2, "average": 0.4, "above average": 0.6, "good": 0.8, "excellent": 1.0}
"""Values of the classes (Sparks of Tabular Reasoning, §3.2.2 and B.4; the text names six, the prompt five)."""
MAX_CHANGES = 100_000.0

_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)
_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*)\n\s*```\Z", re.DOTALL)


class UnusableReply(ValueError):
    """The judge's reply is not what was asked for."""


def read_reply(kind: JudgeKind, text: str) -> float:
    """The value in a reply: a score in [0, 1], a grade's value in [0, 1], or a number of changes from 0 up.

    A reasoning model's thinking before `</think>` and one fence around the object are let pass. Several objects, prose
    around the object, further keys, a value out of range or of another type are not: a reply that quotes the policy's
    SQL must not be mistaken for a verdict.

    Raises:
        UnusableReply: saying what is wrong.
    """
    body = _THOUGHT.sub("", text or "").strip()
    fenced = _FENCE.match(body)
    try:
        reply = json.loads(fenced.group(1) if fenced else body)
    except (ValueError, RecursionError) as error:
        raise UnusableReply(f"no JSON object: {body[:120]!r}") from error
    key, read = _READERS[kind]
    if not isinstance(reply, dict) or set(reply) != {key}:
        raise UnusableReply(f"not an object with the one key {key!r}: {body[:120]!r}")
    return read(reply[key])


def _score(value: Any) -> float:
    """A number in [0, 1]."""
    return _number(value, 1.0)


def _grade(value: Any) -> float:
    """The value of a class name."""
    name = " ".join(str(value).lower().split()) if isinstance(value, str) else ""
    if name not in GRADES:
        raise UnusableReply(f"no such grade: {value!r}")
    return GRADES[name]


def _changes(value: Any) -> float:
    """The one number of the list."""
    if not isinstance(value, list) or len(value) != 1:
        raise UnusableReply(f"not a list of one number: {value!r}")
    return _number(value[0], MAX_CHANGES)


def _number(value: Any, top: float) -> float:
    """A finite number from 0 to `top`."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise UnusableReply(f"not a number: {value!r}")
    if not 0.0 <= value <= top:
        raise UnusableReply(f"outside [0, {top:g}]: {value!r}")
    return float(value)


_READERS: dict[JudgeKind, tuple[str, Callable[[Any], float]]] = {
    JudgeKind.SCORE: ("score", _score),
    JudgeKind.GRADE: ("grade", _grade),
    JudgeKind.CHANGES: ("scores", _changes),
}
