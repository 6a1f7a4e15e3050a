"""What running SQL gave: the status words and the two records that leave the executor."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    """How one query ended."""

    OK = "ok"
    """It ran to its end, within every limit."""
    ERROR = "error"
    """SQLite refused it, or it is no query at all (empty, a comment, several statements)."""
    TIMEOUT = "timeout"
    """It ran past its deadline."""
    FORBIDDEN = "forbidden"
    """It asked for something other than reading: ATTACH, PRAGMA, DML, DDL, a function that reaches out."""
    TOO_LARGE = "too_large"
    """Its result, one of its values or its text is beyond the limits. Never a match."""


_OK = Status.OK  # a member's look-up through its class is slow in Python 3.11

NO_STATEMENT = "no SQL statement: the text is empty or holds only comments"
"""Message of an ERROR whose SQL holds no statement. SQLite would 'run' it and return nothing."""


@dataclass(frozen=True, slots=True)
class Execution:
    """What running one SQL query gave.

    Attributes:
        status: how it ended.
        columns: names of the result columns, duplicates kept; empty when it failed.
        rows: the first rows, at most `keep_rows` of them; None unless rows were asked for and the query succeeded.
        n_rows: number of rows of the whole result.
        seconds: wall clock spent running and fetching when it was run (remembered results keep their first time).
        message: SQLite's or our reason when the status is not OK, "" otherwise.
        truncated: `rows` is only the beginning of the result.
        all_null: the result has rows, and every cell of them is NULL.
        data_fault: the message is about the database file (missing, corrupt, locked), not about the SQL.
        digest: order-free digest of the distinct rows (see `digest.py`), "" unless asked for.
    """

    status: Status
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] | None = None
    n_rows: int = 0
    seconds: float = 0.0
    message: str = ""
    truncated: bool = False
    all_null: bool = False
    data_fault: bool = False
    digest: str = ""

    @property
    def ok(self) -> bool:
        """Whether the query ran to its end."""
        return self.status is _OK

    @property
    def is_empty(self) -> bool:
        """Whether the query ran to its end and returned no row."""
        return self.status is _OK and self.n_rows == 0

    @property
    def no_statement(self) -> bool:
        """Whether it failed because the text holds no SQL statement."""
        return self.message == NO_STATEMENT


@dataclass(frozen=True, slots=True)
class Comparison:
    """A gold and a predicted query, run and compared.

    Attributes:
        gold: what the gold query gave. Its failure is the data's fault: every comparator is then 0.0 or None.
        pred: what the predicted query gave.
        values: comparator name to value in [0, 1]; None where the comparator is not defined (see `comparators`).
    """

    gold: Execution
    pred: Execution
    values: dict[str, float | None] = field(default_factory=dict)
