"""`bag`: multiset equality of rows, the strict option for training.

Semantics: every row must occur equally often on both sides; row order and column names do not count, column order does.
Cells compare as in `bird_set`.

Source: this project. It closes the reward hole of `bird_set`, where repeated and lost duplicates go unseen.

Pitfalls: a gold query that forgot DISTINCT rejects predictions that a person would accept.
"""

from collections import Counter

from verl_sql.database.comparators.rows import Rows


def bag(gold_rows: Rows, pred_rows: Rows) -> bool:
    """Whether the two results hold the same rows, each the same number of times."""
    if len(gold_rows) != len(pred_rows):
        return False
    return gold_rows == pred_rows or Counter(gold_rows) == Counter(pred_rows)


def set_and_bag(gold_rows: Rows, pred_rows: Rows) -> tuple[bool, bool]:
    """`bird_set` and `bag` in one pass: different sets are different bags, and without duplicates equal sets are
    equal bags."""
    if gold_rows == pred_rows:
        return True, True
    distinct = set(gold_rows)
    if distinct != set(pred_rows):
        return False, False
    if len(gold_rows) != len(pred_rows):
        return True, False
    return True, len(distinct) == len(gold_rows) or Counter(gold_rows) == Counter(pred_rows)
