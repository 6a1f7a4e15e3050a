"""A rollout dump under another reward: new scores, and what they change for a group-relative policy gradient."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from verl_sql.rewards.dump import DumpLine

THREADS = 8
_SAME = 1e-9


@dataclass(frozen=True, slots=True)
class Rescored:
    """One rollout with its old and its new score, and the whole dict of the new reward."""

    line: DumpLine
    old: float
    new: float
    row: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RescoreSummary:
    """What another reward changes.

    Attributes:
        rollouts: rollouts with an old score.
        groups: groups of at least two of them.
        mean_old, mean_new: mean scores.
        rankings_changed: groups in which some pair of rollouts is ordered differently (a tie counts as an order).
        signs_changed: rollouts whose score minus its group's mean has another sign (positive, zero, negative).
        signal_lost: groups that varied and no longer do.
        signal_won: groups that did not vary and now do.
    """

    rollouts: int
    groups: int
    mean_old: float
    mean_new: float
    rankings_changed: int
    signs_changed: int
    signal_lost: int
    signal_won: int


def rescore(lines: Sequence[DumpLine], module: ModuleType, kwargs: Mapping[str, Any]) -> Iterator[Rescored]:
    """Score every rollout again, in order, several at once."""

    def one(line: DumpLine) -> Rescored:
        row = module.compute_score("rescore", line.completion, line.gold, line.extra_info, **kwargs)
        return Rescored(line, math.nan if line.score is None else line.score, float(row["score"]), row)

    with ThreadPoolExecutor(THREADS) as pool:
        yield from pool.map(one, lines)


def summarise(rescored: Sequence[Rescored]) -> RescoreSummary:
    """Compare old and new scores group by group; rollouts without an old score are left out."""
    known = [r for r in rescored if not math.isnan(r.old)]
    by_group: dict[tuple[Any, ...], list[Rescored]] = defaultdict(list)
    for r in known:
        by_group[r.line.group].append(r)
    groups = [g for g in by_group.values() if len(g) > 1]
    pairs = [([r.old for r in g], [r.new for r in g]) for g in groups]
    return RescoreSummary(
        rollouts=len(known),
        groups=len(groups),
        mean_old=_mean([r.old for r in known]),
        mean_new=_mean([r.new for r in known]),
        rankings_changed=sum(_order(old) != _order(new) for old, new in pairs),
        signs_changed=sum(a != b for old, new in pairs for a, b in zip(_signs(old), _signs(new), strict=True)),
        signal_lost=sum(_varies(old) and not _varies(new) for old, new in pairs),
        signal_won=sum(_varies(new) and not _varies(old) for old, new in pairs),
    )


def _mean(values: Sequence[float]) -> float:
    """The mean, nan of nothing."""
    return math.fsum(values) / len(values) if values else math.nan


def _sign(value: float) -> int:
    """-1, 0 or 1; differences of rounding are 0."""
    return 0 if abs(value) < _SAME else (1 if value > 0 else -1)


def _order(scores: Sequence[float]) -> list[int]:
    """The order of every pair of a group."""
    return [_sign(a - b) for i, a in enumerate(scores) for b in scores[i + 1 :]]


def _signs(scores: Sequence[float]) -> list[int]:
    """The signs of the group-relative advantages."""
    mean = _mean(scores)
    return [_sign(score - mean) for score in scores]


def _varies(scores: Sequence[float]) -> bool:
    """Whether a group carries a signal at all."""
    return max(scores) - min(scores) > _SAME
