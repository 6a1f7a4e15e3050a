"""Preference pairs (Reward-SQL §5.2, DPO): of two rollouts of a question the one with the higher reward wins.

A rollout that the length limit cut may lose, never win: it would teach to write on.
Rows hold `prompt`, `chosen` and `rejected` as message lists, the conversational form that TRL's DPO trainer reads.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import combinations
from typing import Any

import pyarrow as pa

from verl_sql.dataset.parquet import EXTRA_INFO
from verl_sql.dataset.sft.questions import Question
from verl_sql.dataset.sft.rollouts import Rollout

_MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
PREFERENCE_SCHEMA = pa.schema(
    [
        ("prompt", _MESSAGES),
        ("chosen", _MESSAGES),
        ("rejected", _MESSAGES),
        ("chosen_score", pa.float64()),
        ("rejected_score", pa.float64()),
        ("extra_info", EXTRA_INFO),
    ]
)


class Pairing(StrEnum):
    """Which pairs of a question are taken."""

    BEST_WORST = "best_worst"
    """The best against the worst, the second best against the second worst, and so on."""
    ALL = "all"
    """Every pair."""


def preference_rows(
    groups: Iterable[tuple[Question, Sequence[Rollout]]],
    pairing: Pairing = Pairing.BEST_WORST,
    margin: float = 0.0,
    per_question: int | None = 1,
    counts: Counter[str] | None = None,
) -> Iterator[dict[str, Any]]:
    """A PREFERENCE_SCHEMA row for every pair whose rewards differ by more than `margin`; ties give none.

    The pairs of a question depend on its rollouts alone, not on their order. Where rewards do not decide, the texts
    that were written most often come first: those are the likely mistakes.

    Args:
        groups: questions with their rollouts.
        pairing: which pairs.
        margin: how much better the chosen one must be.
        per_question: so many a question at most, those with the greatest difference of rewards first; None for all.
        counts: gets `distinct` rollouts, `pairs` found, and questions that gave none (`without_pair`).
    """
    told: Counter[str] = Counter() if counts is None else counts
    for question, rollouts in groups:
        times = Counter(rollout.text for rollout in rollouts)
        different = list({r.text: r for r in rollouts}.values())
        pairs = [(a, b) for a, b in _pairs(different, pairing, times) if a.score - b.score > margin and a.finished]
        pairs.sort(key=lambda p: (p[1].score - p[0].score, -times[p[0].text] * times[p[1].text], p[0].text, p[1].text))
        told.update(distinct=len(different), pairs=len(pairs), without_pair=not pairs)
        for chosen, rejected in pairs[:per_question]:
            yield {
                "prompt": list(question.prompt),
                "chosen": list(chosen.messages),
                "rejected": list(rejected.messages),
                "chosen_score": chosen.score,
                "rejected_score": rejected.score,
                "extra_info": question.info,
            }


def _pairs(
    rollouts: Sequence[Rollout], pairing: Pairing, times: Mapping[str, int]
) -> Iterable[tuple[Rollout, Rollout]]:
    """(better or equal, worse or equal) pairs; of equal rewards the text that was written more often comes first."""
    best = sorted(rollouts, key=lambda r: (-r.score, -times[r.text], r.text))
    if pairing is Pairing.ALL:
        return combinations(best, 2)
    worst = sorted(rollouts, key=lambda r: (r.score, -times[r.text], r.text))
    return zip(best[: len(best) // 2], worst, strict=False)
