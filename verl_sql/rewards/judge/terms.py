"""The judge's terms in the papers' tables; a right prediction earns 1 without the judge being asked."""

import logging
from functools import cache

from verl_sql.rewards.judge.prompts import JudgeKind
from verl_sql.rewards.sample import Sample

log = logging.getLogger(__name__)


def judge_score(sample: Sample) -> float:
    """1 when the execution is right, else the judge's score in [0, 1] (Reasoning-SQL §3.2 and Algorithm 1).

    Without a judge, and without an answer, 0.
    """
    return _earned(sample, JudgeKind.SCORE)


def judge_grade(sample: Sample) -> float:
    """1 when the execution is right, else the class the judge gave: 0, 0.2, 0.4, 0.6, 0.8 or 1 (Sparks, §3.2.2, B.4).

    Without a judge, and without an answer, 0.
    """
    return _earned(sample, JudgeKind.GRADE)


def judged(sample: Sample) -> float:
    """1 when a judge's verdict is part of the score."""
    return float(bool(sample.judged))


@cache
def warn_no_judge(reward: str) -> None:
    """Say once a process that a reward runs without its judge."""
    log.warning(
        "%s: no judge configured (reward_kwargs.judge.base_url, JUDGE_BASE_URL or verl's reward model): "
        "wrong SQL earns nothing from the judge's terms",
        reward,
    )


def _earned(sample: Sample, kind: JudgeKind) -> float:
    """1 for a right sample, else what the judge said, else 0."""
    return 1.0 if sample.right else sample.judged.get(kind, 0.0)
