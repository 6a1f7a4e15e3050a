"""`test_suite`: denotation equality of the Spider test suite (execution on variants of the database).

Semantics, with the official defaults:
1. Both queries are rewritten before they run (`suite_sql`): `> =`, `< =` and `! =` are joined, anywhere in the text;
   `YEAR(CURDATE())` becomes 2020; and every token DISTINCT is dropped, tokens being those of sqlparse's lexer.
2. Two empty results are equal. Otherwise both need the same number of rows and of columns, and some permutation of the
   predicted columns must make the results equal: as lists if the text `order by` occurs anywhere in the gold query
   (`order_matters`), else as bags. Cells compare as Python compares them (`1 == 1.0`).
3. The evaluator first compares rows whose cells it sorted by text and type. Where `1` stands against `1.0`, or `0.0`
   against `-0.0`, that order can differ between equal rows, and the pair is rejected. It is so here too.
4. All variants of the database must agree (the executor's part).

Source: Zhong, Yu and Klein 2020, "Semantic Evaluation for Text-to-SQL with Distilled Test Suites".

Pitfalls: `order  by` with two blanks or a line break goes unseen, an `order by` in a string or subquery counts; the
rewriting reaches into strings. The evaluator runs only the first of several statements; here the text stays whole, so
that `good; bad` is refused by the executor. It tries all column permutations, which hangs on ten columns over {1, 2};
here the search is guided and bounded (see `permutation`).
"""

from collections.abc import Iterable

from verl_sql.database.comparators.permutation import Match, match_bags, match_lists, search_budget
from verl_sql.database.comparators.rows import Row, Rows
from verl_sql.database.comparators.suite_text import order_matters, remove_distinct, suite_sql

__all__ = ["Match", "match_results", "order_matters", "remove_distinct", "results_equal", "suite_sql"]


def results_equal(gold_rows: Rows, pred_rows: Rows, order_matters: bool) -> bool:
    """Whether the test suite takes the two results for equal; a search that hit its bound is logged, and is not."""
    match = match_results(gold_rows, pred_rows, order_matters)
    if match is Match.UNDECIDED:
        import logging  # only here: it is a fifth of a worker's start

        n_rows, width = len(gold_rows), len(gold_rows[0])
        bound = search_budget(n_rows, width)
        logging.getLogger(__name__).warning(
            "test_suite: %d rows of %d columns count as different: no column permutation found within %d cells",
            n_rows, width, bound,
        )  # fmt: skip
    return match is Match.EQUAL


def match_results(gold_rows: Rows, pred_rows: Rows, order_matters: bool) -> Match:
    """Compares two results under every permutation of the predicted columns, as lists or as bags.

    Linear in the number of cells, except for bags with many columns that cannot be told apart: those are bounded.
    """
    if not gold_rows and not pred_rows:
        return Match.EQUAL
    if len(gold_rows) != len(pred_rows) or len(gold_rows[0]) != len(pred_rows[0]):
        return Match.DIFFERENT
    match = match_lists(gold_rows, pred_rows) if order_matters else match_bags(gold_rows, pred_rows)
    if match is Match.EQUAL and not _sorted_rows_agree(gold_rows, pred_rows, order_matters):
        return Match.DIFFERENT
    return match


def _sorted_rows_agree(gold_rows: Rows, pred_rows: Rows, order_matters: bool) -> bool:
    """The evaluator's first test, asked of results that are equal: fails only where a float has no fraction."""
    if not (_has_whole_float(gold_rows) or _has_whole_float(pred_rows)):
        return True
    gold, pred = [_sort_cells(row) for row in gold_rows], [_sort_cells(row) for row in pred_rows]
    return gold == pred if order_matters else set(gold) == set(pred)


def _has_whole_float(rows: Iterable[Row]) -> bool:
    """Whether any cell is a float that an integer could equal."""
    return any(type(cell) is float and cell.is_integer() for row in rows for cell in row)


def _sort_cells(row: Row) -> Row:
    """The row's cells in the order of their text and type."""
    return tuple(sorted(row, key=lambda cell: str(cell) + str(type(cell))))
