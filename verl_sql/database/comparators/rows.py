"""The shape in which every comparator receives a result: rows as tuples of raw SQLite cells."""

from collections.abc import Sequence
from typing import Any, NamedTuple

Row = tuple[Any, ...]
Rows = Sequence[Row]


class ResultView(NamedTuple):
    """A complete result, as it was fetched.

    Attributes:
        columns: the column names, duplicates kept; empty when nothing was selected.
        rows: every row, in the order SQLite gave them; a list of tuples.
    """

    columns: tuple[str, ...]
    rows: Rows
