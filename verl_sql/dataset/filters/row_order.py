"""Golds whose result depends on the order in which rows are read, though nothing in them says an order.

Each gold is run once more on a connection that reads rows from the last to the first and adds numbers up from the
smallest to the largest (`verl_sql.database.backwards`). A query that means the same but takes the rows in another
order may then miss its result under exact equality. What differs in the last digits of numbers only is a `float_sum`.
A gold that agrees has proved nothing: other orders remain.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from verl_sql.database.execution import Execution
from verl_sql.database.executor import Executor
from verl_sql.dataset.reasons import Finding, Reason

CLOSE = 1e-9
"""Numbers that differ by a smaller share count as the same sum."""
COMPARED_ROWS = 10_000
Row = tuple[Any, ...]


class RowOrderCheck:
    """Runs golds forwards and backwards.

    Args:
        forwards: runs them as they are.
        backwards: the same with `Limits(backwards=True)`.
        timeout: seconds a gold may run.
    """

    def __init__(self, forwards: Executor, backwards: Executor, timeout: float) -> None:
        """Nothing is run yet."""
        self.forwards, self.backwards, self.timeout = forwards, backwards, timeout

    def findings(self, ran: Sequence[tuple[Path, str, Execution]]) -> list[list[Finding]]:
        """For each (database, gold, execution with a digest) what running it backwards says; nothing of failures."""
        again = [(database, gold) for database, gold, execution in ran if execution.ok]
        results = iter(self.backwards.execute_many(again, timeout=self.timeout, digest=True))
        return [
            self._finding(database, gold, execution, next(results)) if execution.ok else []
            for database, gold, execution in ran
        ]

    def _finding(self, database: Path, gold: str, there: Execution, back: Execution) -> list[Finding]:
        """A finding when the two results are not the same set of rows."""
        if not back.ok or there.digest == back.digest:
            return []
        rows = [
            executor.execute(database, gold, timeout=self.timeout, keep_rows=COMPARED_ROWS).rows or ()
            for executor in (self.forwards, self.backwards)
        ]
        return [Finding(Reason.FLOAT_SUM if same_but_digits(*rows) else Reason.ROW_ORDER)]


def same_but_digits(first: Sequence[Row], second: Sequence[Row]) -> bool:
    """Whether two bags of rows are the same but for the last digits of floats."""
    if len(first) != len(second):
        return False
    pairs = zip(sorted(first, key=_rough), sorted(second, key=_rough), strict=True)
    return all(len(a) == len(b) and all(map(_same, a, b)) for a, b in pairs)


def _rough(row: Row) -> tuple[tuple[str, str], ...]:
    """A sort key in which the last digits of a number do not count."""
    return tuple(
        ("number", f"{value:.6g}") if isinstance(value, int | float) else (type(value).__name__, str(value))
        for value in row
    )


def _same(a: Any, b: Any) -> bool:
    """Equal, or two numbers that are close."""
    if isinstance(a, int | float) and isinstance(b, int | float):
        return math.isclose(a, b, rel_tol=CLOSE, abs_tol=1e-12)
    return type(a) is type(b) and a == b
