"""Trajectories with tools: which SQL was tried on the way, and numbers on turns, calls and repairs for the metrics.

What the agent loop recorded (`extra_info["tool_log"]`, `["own_turns"]`, `["ran_out"]`) is taken first; a dump that is
scored again has none of it, and the same is read off the text.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from verl_sql.rewards.sample import Sample
from verl_sql.sqltext.extract import Answer
from verl_sql.sqltext.turns import calls_of, split_turns, turns_of
from verl_sql.tools.result import CallStatus
from verl_sql.tools.schemas import SCHEMAS

MAX_DRAFTS = 8
"""Drafts that are compared with the gold at most, the last ones."""

_FAILED = tuple(status for status in CallStatus if status is not CallStatus.OK)
_OPENINGS = {f"{status.value.replace('_', ' ')}:": status for status in _FAILED}


def drafts_and_answer(completion: str, answer: Answer, extra_info: Mapping[str, Any]) -> Sequence[str]:
    """Every SQL that the policy ran with `run_sql`, in order and each once, and the one it answers with, the last."""
    calls = calls_of(turns_of(completion, extra_info))
    run = (str(call.arguments.get("sql") or "").strip() for call in calls if call.name == "run_sql")
    drafts = list(dict.fromkeys(sql for sql in run if sql))
    return [*drafts[-MAX_DRAFTS:], answer.sql or ""]


def repaired(sample: Sample) -> float:
    """1 when a draft was wrong and the answer is right: a repair that worked."""
    return float(sample.right and not all(draft.right for draft in sample.attempts[:-1]))


def spoiled(sample: Sample) -> float:
    """1 when a draft was right and the answer is wrong: a repair that hurt."""
    return float(not sample.right and any(draft.right for draft in sample.attempts[:-1]))


def n_drafts(sample: Sample) -> float:
    """Number of different queries that were run before the answer, at most MAX_DRAFTS."""
    return float(len(sample.attempts) - 1)


def tool_facts(completion: str, extra_info: Mapping[str, Any] | None = None) -> dict[str, float]:
    """Turns and tool calls of one trajectory, in all, by tool and by how they failed; the same keys for every one.

    `turns` counts the policy's, `tool_calls` all calls, `tool_<name>` those of a tool, `tool_failed` those that did not
    end well, `tool_failed_<status>` those of one kind; `ran_out_turns` and `ran_out_tokens` tell which budget ended it.
    """
    info = extra_info or {}
    entries = list(_logged(completion, info))
    names = Counter(name for name, _ in entries)
    statuses = Counter(status for _, status in entries)
    return {
        "turns": float(len(turns_of(completion, info))),
        "tool_calls": float(len(entries)),
        **{f"tool_{name}": float(names[name]) for name in SCHEMAS},
        "tool_failed": float(len(entries) - statuses[CallStatus.OK]),
        **{f"tool_failed_{status}": float(statuses[status]) for status in _FAILED},
        **{f"ran_out_{what}": float(info.get("ran_out") == what) for what in ("turns", "tokens")},
    }


def _logged(completion: str, info: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and status of each call that was answered."""
    recorded = info.get("tool_log")
    if recorded is not None:
        yield from ((str(entry["name"]), str(entry["status"])) for entry in recorded)
        return
    waiting: list[str] = []
    for turn in split_turns(completion):
        if turn.role == "assistant":
            waiting = [call.name for call in turn.calls]
        elif waiting:
            yield waiting.pop(0), _status(turn.text)


def _status(text: str) -> str:
    """How a call ended, by the first words of its answer."""
    return next((status for opening, status in _OPENINGS.items() if text.startswith(opening)), CallStatus.OK)
