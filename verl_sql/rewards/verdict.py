"""What scoring one completion says: the outcome, the terms and the score, and the dict that verl wants."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """How a completion ended; exactly one a sample."""

    MATCH = "match"
    """Both queries ran, the gold has rows, and the comparator calls the results equal."""
    MISMATCH = "mismatch"
    """Both queries ran and the results differ."""
    BOTH_EMPTY = "both_empty"
    """Both queries ran and neither returned a row: equal by every comparator, and weak evidence."""
    PRED_ERROR = "pred_error"
    """SQLite refused the prediction or failed while running it."""
    PRED_TIMEOUT = "pred_timeout"
    """The prediction overran its deadline."""
    PRED_FORBIDDEN = "pred_forbidden"
    """The prediction tried something other than reading."""
    PRED_TOO_LARGE = "pred_too_large"
    """The prediction returned more rows or bytes than may be compared."""
    NO_ANSWER = "no_answer"
    """No SQL was found in the completion."""
    GOLD_ERROR = "gold_error"
    """The gold query failed: the data's fault, never a match; every completion of the question gets the same score."""
    NO_VERDICT = "no_verdict"
    """The judge gave no usable verdict and the reward was told to skip: `skipped` is 1 and the judge's terms are 0."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The scored completion.

    Attributes:
        outcome: how it ended.
        score: the training reward, the weighted sum of the terms.
        acc: 1.0 when the chosen comparator calls the prediction right, else 0.0.
        terms: value of each term before its weight, by name; the same names for every sample of a reward.
        pred: the SQL that was scored, empty when none was found.
        facts: other numbers worth logging (the strict verdict, whether it ran, ...), the same names for every sample.
    """

    outcome: Outcome
    score: float
    acc: float
    terms: dict[str, float]
    pred: str
    facts: dict[str, float] = field(default_factory=dict)


RESERVED = frozenset({"score", "acc", "pred", "outcome", "reward"})
"""Names that no term and no fact may take; verl counts a key named `reward` twice."""


_SHARES = {outcome: {f"outcome_{member}": float(member is outcome) for member in Outcome} for outcome in Outcome}


def verdict_dict(verdict: Verdict) -> dict[str, Any]:
    """The flat dict that verl's reward managers expect: every value a float but `pred` and `outcome`.

    Besides `score`, `acc`, the terms and the facts it holds one 0/1 float per outcome, `outcome_<name>`, whose means
    over a batch are the outcome shares.

    Raises:
        ValueError: a term or fact carries a reserved name.
    """
    values = {**verdict.terms, **verdict.facts}
    _refuse_reserved(values)
    return {
        "score": float(verdict.score),
        "acc": float(verdict.acc),
        **{name: float(value) for name, value in values.items()},
        **_SHARES[verdict.outcome],
        "pred": verdict.pred,
        "outcome": verdict.outcome.value,
    }


def _refuse_reserved(values: Mapping[str, float]) -> None:
    """Raise when a name would collide with a key of the dict."""
    if not RESERVED.isdisjoint(values):
        raise ValueError(f"reserved names used by a term or fact: {sorted(RESERVED.intersection(values))}")
