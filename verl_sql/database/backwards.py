"""A connection that reads rows from the last to the first, and adds numbers up from the smallest to the largest.

SQL leaves the order of rows open where no ORDER BY says it, and the last digits of a sum of floats depend on it. A
query whose result on such a connection is another one than on a plain one has no determined result. This is for our own
checks of gold queries: the limits of a pool switch it on before the guard is closed, no query can.

`PRAGMA reverse_unordered_selects` turns the scans around, but not those below a GROUP BY. So sum() and avg() are
replaced by ones that keep their values and add them in the order in which an index on them would give them. total()
stays: Python's functions cannot give its 0.0 for no rows.
"""

import re
import sqlite3
from collections.abc import Iterable

_NUMBER = re.compile(r"\s*[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?)")
COMPENSATED = sqlite3.sqlite_version_info >= (3, 43)
"""Since this version SQLite's own sums carry a correction (Kahan and Babuška), so ours must too."""


def read_backwards(connection: sqlite3.Connection) -> None:
    """Turn a connection around; before it is guarded."""
    connection.execute("PRAGMA reverse_unordered_selects=ON")
    for name, kind in (("sum", _Sum), ("avg", _Average)):
        connection.create_window_function(name, 1, kind)


class _Kept:
    """The values of one group or window frame, NULLs left out."""

    def __init__(self) -> None:
        self.values: list[int | float] = []

    def step(self, value: int | float | str | bytes | None) -> None:
        """One more row."""
        if value is not None:
            self.values.append(value if isinstance(value, int | float) else _number(value))

    def inverse(self, value: object) -> None:
        """The first row leaves the frame."""
        if value is not None:
            del self.values[0]

    def finalize(self) -> int | float | None:
        """The group's value."""
        return self.value()

    def value(self) -> int | float | None:
        """The value of the rows so far."""
        raise TypeError("sum and avg say what their value is")


class _Sum(_Kept):
    def value(self) -> int | float | None:
        """NULL for no rows; an integer for integers only."""
        if all(isinstance(value, int) for value in self.values):
            return sum(self.values) if self.values else None
        return added(sorted(self.values))


class _Average(_Kept):
    def value(self) -> float | None:
        """NULL for no rows."""
        return added(sorted(self.values)) / len(self.values) if self.values else None


def added(values: Iterable[int | float]) -> float:
    """The sum as the SQLite at hand adds floats, in the order given."""
    total = correction = 0.0
    for value in values:
        before, total = total, total + value
        if COMPENSATED:
            correction += (before - total) + value if abs(before) > abs(value) else (value - total) + before
    return total + correction


def _number(value: str | bytes) -> int | float:
    """What SQLite takes a text or blob for in arithmetic: its longest beginning that is a number, else 0."""
    text = value if isinstance(value, str) else value.decode("latin-1")
    match = _NUMBER.match(text)
    found = match.group() if match else "0"
    return float(found) if match and (any(c in found for c in ".eE") or found.strip() != text.strip()) else int(found)
