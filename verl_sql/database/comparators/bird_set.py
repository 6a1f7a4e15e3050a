"""`bird_set`: the execution accuracy of BIRD's evaluation, `set(pred) == set(gold)` over raw row tuples.

Semantics: duplicates, row order and column names do not count; column order does. Cells compare as Python compares
them (`1 == 1.0 == True`, `'1' != 1`, `b'1' != '1'`, NULL equals NULL, no tolerance on floats). Two empty results are
equal, whatever their columns.

Source: BIRD, https://bird-bench.github.io, evaluation of execution accuracy (EX).

Pitfalls: a prediction that loses or repeats rows still matches (7.8 % of the set matches on Spider dev fail on a
variant of the database); log `bag` beside it.
"""

from verl_sql.database.comparators.rows import Rows


def bird_set(gold_rows: Rows, pred_rows: Rows) -> bool:
    """Whether the two results hold the same set of rows.

    Args:
        gold_rows: rows of the gold query, tuples of cells.
        pred_rows: rows of the predicted query.
    """
    return gold_rows == pred_rows or set(gold_rows) == set(pred_rows)
