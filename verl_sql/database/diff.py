"""What differs between a gold and a predicted result, for people: missing, extra and changed rows, and which cells.

Rows are compared as bags. What is left on both sides after equal rows are taken away is paired by the number of cells
that agree in place; a pair that shares at least half of its cells is a changed row, the rest is missing or extra.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

Row = tuple[Any, ...]

PAIRING_ROWS = 200
"""Rows of either side that are tried as partners of each other; beyond them rows are only missing or extra."""

SHOWN_ROWS = 10
CELL_WIDTH = 40


@dataclass(frozen=True, slots=True)
class CellChange:
    """One cell of a changed row: its column (from 0), the column's name, and both values."""

    column: int
    name: str
    gold: Any
    pred: Any


@dataclass(frozen=True, slots=True)
class RowChange:
    """A gold row and the predicted row that is most like it; `cells` are those that differ."""

    gold: Row
    pred: Row
    cells: tuple[CellChange, ...]


@dataclass(frozen=True, slots=True)
class ResultDiff:
    """The difference of two results.

    Attributes:
        n_gold: number of gold rows.
        n_pred: number of predicted rows.
        gold_width: columns of the gold result (0 if it is empty and no names were given).
        pred_width: columns of the predicted result.
        n_equal: rows that both hold, repeats counted.
        order_differs: the bags are equal, the lists are not.
        missing: gold rows without partner, in gold order.
        extra: predicted rows without partner, in predicted order.
        changed: rows that were paired though some cells differ.
    """

    n_gold: int
    n_pred: int
    gold_width: int
    pred_width: int
    n_equal: int
    order_differs: bool
    missing: tuple[Row, ...]
    extra: tuple[Row, ...]
    changed: tuple[RowChange, ...]

    @property
    def same_bag(self) -> bool:
        """Whether both hold the same rows equally often."""
        return self.n_gold == self.n_pred == self.n_equal

    def summary(self) -> str:
        """One line."""
        if self.same_bag:
            return f"{self.n_gold} equal rows" + (" in another order" if self.order_differs else "")
        parts = [f"{self.n_equal} equal", f"{len(self.changed)} changed"]
        parts += [f"{len(self.missing)} missing", f"{len(self.extra)} extra"]
        text = f"gold {self.n_gold} rows, predicted {self.n_pred}: {', '.join(parts)}"
        if self.gold_width != self.pred_width:
            text += f"; gold has {self.gold_width} columns, predicted {self.pred_width}"
        return text

    def __str__(self) -> str:
        """The summary and the first rows of each kind: `-` missing, `+` extra, `~` changed."""
        lines = [self.summary()]
        lines += _shown([f"- {format_row(row)}" for row in self.missing[: SHOWN_ROWS + 1]], len(self.missing))
        lines += _shown([f"+ {format_row(row)}" for row in self.extra[: SHOWN_ROWS + 1]], len(self.extra))
        lines += _shown([f"~ {_format_change(change)}" for change in self.changed[: SHOWN_ROWS + 1]], len(self.changed))
        return "\n".join(lines)


def result_diff(
    gold_rows: Sequence[Row],
    pred_rows: Sequence[Row],
    gold_columns: Sequence[str] = (),
    pred_columns: Sequence[str] = (),
) -> ResultDiff:
    """The difference of two complete results.

    Args:
        gold_rows: rows of the gold query.
        pred_rows: rows of the predicted query.
        gold_columns: names of the gold columns, for the changed cells.
        pred_columns: names of the predicted columns, to know their number when there are no rows.

    Time is linear in the number of cells, but for pairing, which looks at PAIRING_ROWS rows of each side.
    """
    shared = Counter(gold_rows) & Counter(pred_rows)
    missing, extra = _without(gold_rows, shared), _without(pred_rows, shared)
    missing, extra, changed = _pair(missing, extra, gold_columns)
    n_equal = shared.total()
    same_bag = n_equal == len(gold_rows) == len(pred_rows)
    return ResultDiff(
        n_gold=len(gold_rows),
        n_pred=len(pred_rows),
        gold_width=len(gold_rows[0]) if gold_rows else len(gold_columns),
        pred_width=len(pred_rows[0]) if pred_rows else len(pred_columns),
        n_equal=n_equal,
        order_differs=same_bag and list(gold_rows) != list(pred_rows),
        missing=tuple(missing),
        extra=tuple(extra),
        changed=tuple(changed),
    )


def format_row(row: Row) -> str:
    """A row on one line, as SQL literals, long cells cut."""
    return "(" + ", ".join(map(format_cell, row)) + ")"


def format_cell(cell: Any) -> str:
    """A cell as an SQL literal, cut at CELL_WIDTH characters."""
    if cell is None:
        return "NULL"
    if isinstance(cell, bytes):
        text = f"X'{cell[:CELL_WIDTH].hex()}'"
    elif isinstance(cell, str):
        text = "'" + cell[:CELL_WIDTH].replace("'", "''").replace("\n", "\\n") + "'"
    else:
        return str(cell)
    return text if len(cell) <= CELL_WIDTH else text[:-1] + f"…' ({len(cell)} long)"


def _without(rows: Sequence[Row], shared: Counter[Row]) -> list[Row]:
    """The rows less those of the bag, the last of equal ones staying."""
    left = Counter(shared)
    rest = []
    for row in rows:
        if left[row]:
            left[row] -= 1
        else:
            rest.append(row)
    return rest


def _pair(missing: list[Row], extra: list[Row], names: Sequence[str]) -> tuple[list[Row], list[Row], list[RowChange]]:
    """Takes changed rows out of missing and extra: best pairs first, each row once."""
    scores: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for i, gold in enumerate(missing[:PAIRING_ROWS]):
        for j, pred in enumerate(extra[:PAIRING_ROWS]):
            agree = sum(a == b for a, b in zip(gold, pred, strict=False))
            if 2 * agree >= max(len(gold), len(pred)):
                scores[agree].append((i, j))
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for agree in sorted(scores, reverse=True):
        for i, j in scores[agree]:
            if i not in partner and j not in taken:
                partner[i] = j
                taken.add(j)
    changed = [_change(missing[i], extra[j], names) for i, j in sorted(partner.items())]
    rest = [row for i, row in enumerate(missing) if i not in partner]
    return rest, [row for j, row in enumerate(extra) if j not in taken], changed


def _change(gold: Row, pred: Row, names: Sequence[str]) -> RowChange:
    """A changed row; cells that only one side has are not listed, the widths tell them."""
    cells = tuple(
        CellChange(column, names[column] if column < len(names) else f"column {column + 1}", a, b)
        for column, (a, b) in enumerate(zip(gold, pred, strict=False))
        if a != b
    )
    return RowChange(gold, pred, cells)


def _format_change(change: RowChange) -> str:
    """A changed row on one line."""
    cells = ", ".join(f"{c.name}: {format_cell(c.gold)} -> {format_cell(c.pred)}" for c in change.cells)
    return f"{format_row(change.gold)}  {cells or f'{len(change.gold)} cells -> {len(change.pred)}'}"


def _shown(lines: list[str], total: int) -> list[str]:
    """The first lines, and how many more there are."""
    return lines if total <= SHOWN_ROWS else [*lines[:SHOWN_ROWS], f"{lines[0][0]} … {total - SHOWN_ROWS} more"]
