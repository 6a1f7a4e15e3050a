"""`soft_f1`: the Soft F1 of BIRD mini-dev, partial credit a row for the cells it shares with the gold row.

Semantics: each result loses its repeated rows, keeping the first of each; then row i meets row i. With w the width of a
gold row, a pair adds to
    tp: (cells of the predicted row that occur anywhere in the gold row) / w,
    fp: (cells of the predicted row that do not) / w,
    fn: (cells of the gold row that do not occur in the predicted row) / w.
A gold row without partner adds 1 to fn, a predicted row without partner 1 to fp. The value is the F1 of the three sums,
0 where it is undefined, and 1 when both results are empty. Cells compare as in `bird_set`.

Source: BIRD mini-dev, https://github.com/bird-bench/mini_dev, Soft F1.

Pitfalls: row order decides which rows meet, so a right but differently sorted answer earns little; column order does
not count at all, and repeating a right column costs nothing.
"""

from verl_sql.database.comparators.rows import Row, Rows

# From this width on, membership is asked of a set: the work a row stays linear in its width.
_WIDE = 8


def soft_f1(gold_rows: Rows, pred_rows: Rows) -> float:
    """The Soft F1 of two results, in [0, 1]; linear in the number of cells."""
    if gold_rows == pred_rows:
        return 1.0
    gold, pred = list(dict.fromkeys(gold_rows)), list(dict.fromkeys(pred_rows))
    if gold == pred:
        return 1.0
    shared, pred_only, gold_only = _count_cells(gold, pred)
    width = len(gold[0]) if gold else 1
    tp = shared / width
    fp = pred_only / width + max(len(pred) - len(gold), 0)
    fn = gold_only / width + max(len(gold) - len(pred), 0)
    return 2 * tp / (2 * tp + fp + fn) if tp else 0.0


def _count_cells(gold: list[Row], pred: list[Row]) -> tuple[int, int, int]:
    """Cells over all paired rows: predicted cells in the gold row, predicted cells not in it, gold cells missed."""
    shared = pred_only = gold_only = 0
    for gold_row, pred_row in zip(gold, pred, strict=False):
        if gold_row == pred_row:
            shared += len(pred_row)
            continue
        in_gold, in_pred = _members(gold_row), _members(pred_row)
        hits = sum(cell in in_gold for cell in pred_row)
        shared += hits
        pred_only += len(pred_row) - hits
        gold_only += sum(cell not in in_pred for cell in gold_row)
    return shared, pred_only, gold_only


def _members(row: Row) -> Row | frozenset[object]:
    """The row as something to ask for membership."""
    return row if len(row) < _WIDE else frozenset(row)
