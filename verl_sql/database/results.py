"""Results inside a worker, and the memory of them, bounded by bytes. Only what `sqlite3` needs is imported."""

from collections import OrderedDict
from itertools import chain
from sys import getsizeof
from typing import Any

OK, ERROR, TIMEOUT, FORBIDDEN, TOO_LARGE = "ok", "error", "timeout", "forbidden", "too_large"
"""The values of `execution.Status`, without its import."""

_ROW_BYTES, _BASE_BYTES = 64, 600


class Result:
    """What one query gave, rows included, as the worker holds it.

    Attributes:
        timeout: seconds it was allowed; a remembered TIMEOUT only answers requests that allow no more.
        volatile: its SQL asks for the time or for random numbers, so it must not be remembered.
        held_bytes: estimate of the memory that `rows` take.
    """

    __slots__ = (
        "_wire", "columns", "data_fault", "held_bytes", "message", "rows", "seconds", "status", "timeout", "volatile",
    )  # fmt: skip

    def __init__(self, status: str, message: str = "", *, timeout: float = 0.0, data_fault: bool = False) -> None:
        """A failure as given; a success is filled in by the runner."""
        self.status = status
        self.message = message
        self.columns: tuple[str, ...] = ()
        self.rows: list[tuple[Any, ...]] = []
        self.seconds = 0.0
        self.timeout = timeout
        self.volatile = False
        self.data_fault = data_fault
        self.held_bytes = _BASE_BYTES
        self._wire: tuple[Any, ...] | None = None

    def wire(self) -> tuple[Any, ...]:
        """The fields of `execution.Execution` in order, without rows; one object a result, so that a message that
        holds it often carries it once."""
        if self._wire is None:
            self._wire = self._fields(None, False, "")
        return self._wire

    def wire_with(self, keep_rows: int, keep_bytes: int, digest: str) -> tuple[Any, ...]:
        """The same with at most `keep_rows` rows that take at most `keep_bytes`, and the digest."""
        if self.status != OK or keep_rows <= 0:
            return self._fields(None, False, digest)
        rows = fitting(self.rows[:keep_rows], keep_bytes)
        return self._fields(tuple(rows), len(rows) < len(self.rows), digest)

    def _fields(self, rows: tuple[Any, ...] | None, truncated: bool, digest: str) -> tuple[Any, ...]:
        all_null = bool(self.rows) and not any(c is not None for c in chain.from_iterable(self.rows))
        return (
            self.status, self.columns, rows, len(self.rows), self.seconds, self.message, truncated, all_null,
            self.data_fault, digest,
        )  # fmt: skip


def rows_bytes(rows: list[tuple[Any, ...]]) -> int:
    """Memory that rows take as Python objects, cells included, in bytes."""
    if not rows:
        return 0
    return len(rows) * (_ROW_BYTES + 8 * len(rows[0])) + sum(map(getsizeof, chain.from_iterable(rows)))


def fitting(rows: list[tuple[Any, ...]], budget: int) -> list[tuple[Any, ...]]:
    """The longest beginning of `rows` that takes at most `budget` bytes."""
    total = 0
    for number, row in enumerate(rows):
        total += rows_bytes([row])
        if total > budget:
            return rows[:number]
    return rows


class Memory:
    """Results by (database token, SQL), least recently used out first once they exceed `capacity` bytes."""

    def __init__(self, capacity: int) -> None:
        """Empty."""
        self.capacity = capacity
        self.held = 0
        self._results: OrderedDict[tuple[int, str], Result] = OrderedDict()

    def get(self, key: tuple[int, str], timeout: float) -> Result | None:
        """The remembered result, unless it is a timeout that a longer `timeout` might turn into an answer."""
        result = self._results.get(key)
        if result is None or (result.status == TIMEOUT and result.timeout < timeout):
            return None
        self._results.move_to_end(key)
        return result

    def put(self, key: tuple[int, str], result: Result) -> None:
        """Remember a result; one that would take more than half of the room is not kept."""
        self.drop(key)
        size = result.held_bytes + len(key[1])
        if size > self.capacity // 2:
            return
        self._results[key] = result
        self.held += size
        while self.held > self.capacity:
            self.drop(next(iter(self._results)))

    def drop(self, key: tuple[int, str]) -> None:
        """Forget one result, if it is there."""
        result = self._results.pop(key, None)
        if result is not None:
            self.held -= result.held_bytes + len(key[1])

    def drop_database(self, token: int) -> None:
        """Forget everything about one opened database."""
        for key in [key for key in self._results if key[0] == token]:
            self.drop(key)

    def clear(self) -> None:
        """Forget everything."""
        self._results.clear()
        self.held = 0
