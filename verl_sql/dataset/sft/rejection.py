"""Rejection sampling (Reward-SQL §5.2): rollouts whose reward is above a threshold become an SFT set."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from verl_sql.dataset.cocte.diversity import distance, shape
from verl_sql.dataset.sft.questions import Question
from verl_sql.dataset.sft.rollouts import Rollout
from verl_sql.sqltext.extract import extract_answer

Shape = tuple[str, ...]

DIVERSITY_SHOWN = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Diversity thresholds that the counts tell of, whichever is used."""


def rejection_rows(
    groups: Iterable[tuple[Question, Sequence[Rollout]]],
    threshold: float,
    per_question: int | None = None,
    diversity: float = 0.0,
    counts: Counter[str] | None = None,
) -> Iterator[dict[str, Any]]:
    """An SFT row for every rollout with R > threshold, the best first, each text once.

    A rollout that the length limit cut is never kept: it would teach to write on.

    Args:
        groups: questions with their rollouts.
        threshold: τ of the paper, which names no value: with R = PR + OR, above 1 keeps right chains only.
        per_question: so many a question at most; None for all.
        diversity: edit distance of the trees' shapes, over the longer, that a chain must keep from all better ones of
            its question (§4.1's filter); 0 drops equal texts only.
        counts: gets `cut`, `above` (of the threshold), `distinct`, `diverse`, and `diverse_at_<threshold>`.
    """
    told: Counter[str] = Counter() if counts is None else counts
    for question, rollouts in groups:
        whole = [r for r in rollouts if r.finished]
        above = sorted((r for r in whole if r.score > threshold), key=lambda r: -r.score)
        different = list({r.text: r for r in reversed(above)}.values())[::-1]
        shapes = [shape(extract_answer(r.text).sql or "") for r in different]
        kept = _far_apart(shapes, diversity)
        told.update(cut=len(rollouts) - len(whole), above=len(above), distinct=len(different), diverse=len(kept))
        told.update({f"diverse_at_{at}": len(_far_apart(shapes, at)) for at in DIVERSITY_SHOWN})
        for index in kept[:per_question]:
            yield question.row(*different[index].messages)


def _far_apart(shapes: Sequence[Shape], threshold: float) -> list[int]:
    """The positions that are kept: each at least `threshold` from all kept before."""
    kept: list[int] = []
    for index, own in enumerate(shapes):
        if all(distance(own, shapes[other]) >= threshold for other in kept):
            kept.append(index)
    return kept
