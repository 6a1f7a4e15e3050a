"""Rejection sampling (Reward-SQL §5.2): rollouts whose reward is above a threshold become an SFT set."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from verl_sql.dataset.sft.questions import Question
from verl_sql.dataset.sft.rollouts import Rollout


def rejection_rows(
    groups: Iterable[tuple[Question, Sequence[Rollout]]], threshold: float, per_question: int | None = None
) -> Iterator[dict[str, Any]]:
    """An SFT row for every rollout with R > threshold, the best first, each text once.

    Args:
        groups: questions with their rollouts.
        threshold: τ of the paper, which names no value: with R = PR + OR, above 1 keeps right chains only.
        per_question: so many a question at most; None for all.
    """
    for question, rollouts in groups:
        above = sorted((r for r in rollouts if r.score > threshold), key=lambda r: -r.score)
        different = list({r.text: r for r in reversed(above)}.values())[::-1]
        for rollout in different[:per_question]:
            yield question.row(*rollout.messages)
