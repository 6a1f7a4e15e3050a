"""The execution term and the outcome it stands on."""

from verl_sql.database.execution import Comparison, Status
from verl_sql.rewards.sample import Sample
from verl_sql.rewards.verdict import Outcome

BINARY_COMPARATORS = ("bird_set", "bag", "ordered", "test_suite")
"""Comparators that answer right or wrong; any of them may decide the execution term."""

_FAILED = {
    Status.ERROR: Outcome.PRED_ERROR,
    Status.TIMEOUT: Outcome.PRED_TIMEOUT,
    Status.FORBIDDEN: Outcome.PRED_FORBIDDEN,
    Status.TOO_LARGE: Outcome.PRED_TOO_LARGE,
}


_MISMATCH, _MATCH, _BOTH_EMPTY = Outcome.MISMATCH, Outcome.MATCH, Outcome.BOTH_EMPTY
"""A member's look-up through its class is slow in Python 3.11, and every completion passes here."""


def execution(sample: Sample) -> float:
    """1 when the results match by the sample's comparator, else 0; a failed gold never matches.

    Reasoning-SQL §3.2 (execution accuracy, RLEF); R_EX in Think2SQL, OR in Reward-SQL, R_exec in ReToolSQL.
    """
    return float(sample.right)


def is_right(comparison: Comparison, comparator: str, sql: str) -> bool:
    """Whether `sql` counts as right: there is SQL, both queries ran, and the comparator says equal."""
    return comparison.values.get(comparator) == 1.0 and bool(sql) and comparison.gold.ok and comparison.pred.ok


def outcome_of(comparison: Comparison, comparator: str, sql: str) -> Outcome:
    """The outcome of one attempt; a failed gold comes before everything the policy wrote."""
    if not comparison.gold.ok:
        return Outcome.GOLD_ERROR
    if not sql:
        return Outcome.NO_ANSWER
    if not comparison.pred.ok:
        return _FAILED[comparison.pred.status]
    if not is_right(comparison, comparator, sql):
        return _MISMATCH
    return _BOTH_EMPTY if comparison.gold.is_empty and comparison.pred.is_empty else _MATCH
