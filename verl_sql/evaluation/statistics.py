"""Intervals, tests and estimators of execution accuracy. scipy is imported inside: it is in the training set only."""

import math
from dataclasses import dataclass
from types import ModuleType


class MissingPackageError(ImportError):
    """A package of the training set that a report needs is not installed; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval of a proportion, both ends in [0, 1]."""

    low: float
    high: float


def wilson_interval(successes: float, n: int, confidence: float = 0.95) -> Interval:
    """The score interval of a proportion, without continuity correction.

    Wilson, Probable inference, the law of succession, and statistical inference, JASA 22 (1927).

    Args:
        successes: how many of the `n` succeeded. A fraction is allowed: the sum of `n` means that each lie in [0, 1]
            varies at most as much as that many coin tosses do, so that the interval is then too wide rather than too
            narrow.
        n: number of independent trials.
        confidence: probability of covering, between 0 and 1.

    Raises:
        ValueError: there are no trials, or `successes` is not in [0, n].
        MissingPackageError: scipy is not installed.
    """
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes} successes in {n} trials are no proportion")
    z = float(_scipy_stats().norm.ppf((1 + confidence) / 2))
    share = successes / n
    center = share + z * z / (2 * n)
    spread = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if successes == 0 else max(0.0, (center - spread) / scale)
    high = 1.0 if successes == n else min(1.0, (center + spread) / scale)
    return Interval(low, high)


def mcnemar_exact(gained: int, lost: int) -> float:
    """Two-sided p-value of the exact McNemar test: paired questions, right in one measurement only.

    Under the null hypothesis each discordant question is equally likely to be gained or lost, so that `gained` follows
    Binomial(gained + lost, 1/2). McNemar, Psychometrika 12 (1947), with the exact binomial in place of chi-squared.

    Returns:
        The p-value; 1.0 when no question changed.

    Raises:
        ValueError: a count is negative.
        MissingPackageError: scipy is not installed.
    """
    if gained < 0 or lost < 0:
        raise ValueError(f"negative count: {gained} gained, {lost} lost")
    if gained + lost == 0:
        return 1.0
    return float(_scipy_stats().binomtest(gained, gained + lost, 0.5).pvalue)


def pass_at_k(n: int, correct: int, k: int) -> float:
    """Unbiased estimate of the probability that one of `k` samples is right, from `n` samples of one question.

    1 - C(n - c, k) / C(n, k): Chen et al., Evaluating Large Language Models Trained on Code (2021), equation 1.

    Args:
        n: samples drawn.
        correct: how many of them are right (c).
        k: samples one would be allowed to draw.

    Raises:
        ValueError: not 0 <= correct <= n or not 1 <= k <= n.
    """
    if not 0 <= correct <= n or not 1 <= k <= n:
        raise ValueError(f"pass@{k} cannot be estimated from {correct} right ones of {n} samples")
    return 1.0 - math.comb(n - correct, k) / math.comb(n, k)


def _scipy_stats() -> ModuleType:
    """The module scipy.stats."""
    try:
        from scipy import stats
    except ImportError as error:
        raise MissingPackageError("the report needs scipy: pip install scipy, or use the recipes' .venv") from error
    return stats  # type: ignore[no-any-return, unused-ignore]
