"""The terms of Progress-SQL that compare the turns of one completion."""

from verl_sql.rewards.alignment import alignment
from verl_sql.rewards.sample import Sample


def progress(sample: Sample) -> float:
    """alignment(final SQL) − alignment(initial SQL), in [−1, 1]; 0 for a single turn (Progress-SQL, abstract)."""
    if len(sample.attempts) < 2:
        return 0.0
    return final_alignment(sample) - alignment(sample.attempts[0].sql, sample.gold, sample.database)


def final_alignment(sample: Sample) -> float:
    """Alignment of the final SQL with the gold, in [0, 1]."""
    return alignment(sample.sql, sample.gold, sample.database)


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


def _runs(sql: str, ok: bool) -> bool:
    """Whether there is SQL and it ran."""
    return bool(sql) and ok
