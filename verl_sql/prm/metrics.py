"""How well a reward model tells correct steps from wrong ones, over all steps and at each position of the chain."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BINS = 10
"""Bins of equal width for the calibration error."""
FINAL = 0
"""The position of a final query, which is no step."""


@dataclass(frozen=True, slots=True)
class ScoredStep:
    """A step that has a label: its position in the chain (from 1; FINAL), the label (0 or 1), its score in [0, 1]."""

    position: int
    label: int
    score: float


def auc(scores: Sequence[float], labels: Sequence[int]) -> float | None:
    """P(score of a correct step > score of a wrong one), ties counted half; None without both kinds.

    >>> auc([0.9, 0.8, 0.3, 0.3], [1, 0, 1, 0])
    0.625
    """
    correct = sum(labels)
    wrong = len(labels) - correct
    if not correct or not wrong:
        return None
    ranks = _ranks(scores)
    return (sum(r for r, label in zip(ranks, labels, strict=True) if label) - correct * (correct + 1) / 2) / (
        correct * wrong
    )


def calibration_error(scores: Sequence[float], labels: Sequence[int], bins: int = BINS) -> float | None:
    """Expected calibration error: |mean score − share of correct steps| a bin, weighted by the bin's steps.

    >>> calibration_error([0.95, 0.95, 0.15], [1, 0, 0])
    0.35
    """
    if not scores:
        return None
    members: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for score, label in zip(scores, labels, strict=True):
        members[min(int(score * bins), bins - 1)].append((score, label))
    off = sum(abs(sum(s for s, _ in own) - sum(y for _, y in own)) for own in members.values())
    return round(off / len(scores), 12)


def accuracy(scores: Sequence[float], labels: Sequence[int]) -> float | None:
    """Share of steps on the right side of 0.5."""
    right = sum((score >= 0.5) == bool(label) for score, label in zip(scores, labels, strict=True))
    return right / len(scores) if scores else None


def report(steps: Sequence[ScoredStep], position_means: Mapping[int, float]) -> dict[str, Any]:
    """The numbers of held-out steps.

    Args:
        steps: with labels and scores.
        position_means: for each position the share of correct steps in the training set; the baseline that knows the
            position only scores a step with it.

    Returns:
        steps, correct (share), auc, position_only_auc, calibration_error, accuracy, and `by_position` with the same
        for each position. At one position the baseline knows nothing: 0.5. Final queries have numbers of their own,
        `final_query`; where there is nothing else (an outcome model) they are the numbers.
    """
    finals = [step for step in steps if step.position == FINAL]
    own = [step for step in steps if step.position != FINAL] or finals
    baseline = auc([position_means.get(step.position, 0.5) for step in own], [step.label for step in own])
    by_position: dict[str, Any] = {}
    for position in sorted({step.position for step in own} - {FINAL}):
        by_position[str(position)] = _numbers([step for step in own if step.position == position])
    found = {**_numbers(own), "position_only_auc": _round(baseline), "by_position": by_position}
    return {**found, "final_query": _numbers(finals)} if finals and own is not finals else found


def position_means(labelled: Sequence[tuple[int, int]]) -> dict[int, float]:
    """Share of label 1 at each position, of (position, label) pairs."""
    found: dict[int, list[int]] = defaultdict(list)
    for position, label in labelled:
        found[position].append(label)
    return {position: sum(labels) / len(labels) for position, labels in sorted(found.items())}


def _numbers(steps: Sequence[ScoredStep]) -> dict[str, Any]:
    """The numbers of some steps."""
    scores, labels = [step.score for step in steps], [step.label for step in steps]
    return {
        "steps": len(steps),
        "correct": _round(sum(labels) / len(labels)) if labels else None,
        "auc": _round(auc(scores, labels)),
        "calibration_error": _round(calibration_error(scores, labels)),
        "accuracy": _round(accuracy(scores, labels)),
    }


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks from 1; equal values share the mean of theirs."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    while start < len(order):
        end = start
        while end + 1 < len(order) and values[order[end + 1]] == values[order[start]]:
            end += 1
        for place in order[start : end + 1]:
            ranks[place] = (start + end) / 2 + 1
        start = end + 1
    return ranks


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
