"""The terms of Progress-SQL that compare the turns of one completion, and the facts that say what the turns did."""

from verl_sql.rewards.alignment import alignment
from verl_sql.rewards.sample import Attempt, Sample


def progress(sample: Sample) -> float:
    """alignment(final SQL) − alignment(initial SQL), in [−1, 1]; 0 for a single turn (Progress-SQL, abstract)."""
    if len(sample.attempts) < 2:
        return 0.0
    return final_alignment(sample) - _alignment(sample.attempts[0], sample)


def final_alignment(sample: Sample) -> float:
    """Alignment of the final SQL with the gold, in [0, 1]; with the gold's chain of CTEs if that is more alike."""
    return _alignment(sample.final, sample)


def latency(sample: Sample) -> float:
    """1 / t for a final SQL that is right, t the first turn (from 1) whose SQL was right; 0 for a wrong final SQL.

    The abstract asks for more the earlier the SQL is right and prints no formula.
    """
    if not sample.right:
        return 0.0
    first = next(turn for turn, attempt in enumerate(sample.attempts, 1) if attempt.right)
    return 1.0 / first


def status_change(sample: Sample) -> float:
    """+1 when an invalid first SQL ended valid, −1 when a valid first one ended invalid, else 0.

    Valid: it ran to its end. A single turn changes nothing.
    """
    first, last = sample.attempts[0], sample.attempts[-1]
    return float(_runs(last.sql, last.comparison.pred.ok)) - float(_runs(first.sql, first.comparison.pred.ok))


def n_turns(sample: Sample) -> float:
    """Number of turns that gave an SQL (1 for a completion without any)."""
    return float(len(sample.attempts))


def first_right(sample: Sample) -> float:
    """1 when the SQL of the first turn is right: what the policy can do without feedback."""
    return float(sample.attempts[0].right)


def repaired(sample: Sample) -> float:
    """1 when later turns mended a wrong first SQL."""
    return float(sample.right and not sample.attempts[0].right)


def spoiled(sample: Sample) -> float:
    """1 when later turns spoiled a right first SQL."""
    return float(sample.attempts[0].right and not sample.right)


def _alignment(attempt: Attempt, sample: Sample) -> float:
    """Alignment of one attempt with the form of the gold that is most like it."""
    golds = (sample.gold, sample.gold_chain) if sample.gold_chain else (sample.gold,)
    return max(alignment(attempt.sql, gold, sample.database) for gold in golds)


def _runs(sql: str, ok: bool) -> bool:
    """Whether there is SQL and it ran."""
    return bool(sql) and ok
