"""Whether some permutation of columns makes two bags of rows equal, decided without trying all permutations.

Rows are known by a class number that both results share: two rows are in one class when they agree in every column
paired so far. A column's signature is the bag of (row class, value) over its rows; only columns of equal signature can
be paired, and pairing two refines the classes. A column that is a function of the row class needs no pairing. Where
every signature is alone the answer is found in two passes; where columns cannot be told apart the smallest group is
tried, and the search ends at a budget of visited cells, for the problem is graph isomorphism in the worst case.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from verl_sql.database.comparators.rows import Rows

Column = tuple[Any, ...]
Signature = frozenset[Any]
Group = tuple[list[Column], list[Column]]

# Cells that one search may visit: this many, or this many times the cells of the result, whichever is more.
SEARCH_CELLS = 2_000_000
SEARCH_PASSES = 20


class Match(StrEnum):
    """What comparing two results under permuted columns came to."""

    EQUAL = "equal"
    """Some permutation makes them equal."""
    DIFFERENT = "different"
    """No permutation does."""
    UNDECIDED = "undecided"
    """The search spent its budget without an answer."""


def match_lists(gold_rows: Rows, pred_rows: Rows) -> Match:
    """Lists of equally many, equally wide rows: equal under a permutation when the bags of whole columns are equal."""
    if gold_rows == pred_rows or Counter(columns_of(gold_rows)) == Counter(columns_of(pred_rows)):
        return Match.EQUAL
    return Match.DIFFERENT


def match_bags(gold_rows: Rows, pred_rows: Rows) -> Match:
    """Bags of equally many, equally wide rows: EQUAL, DIFFERENT, or UNDECIDED when `search_budget` was spent."""
    if gold_rows == pred_rows or Counter(gold_rows) == Counter(pred_rows):
        return Match.EQUAL
    n_rows, width = len(gold_rows), len(gold_rows[0])
    if width == 1:
        return Match.DIFFERENT
    ids = [0] * n_rows
    return _Search(search_budget(n_rows, width)).run(columns_of(gold_rows), columns_of(pred_rows), ids, ids, 1)


def search_budget(n_rows: int, width: int) -> int:
    """Cells that one search over results of this size may visit."""
    return max(SEARCH_CELLS, SEARCH_PASSES * n_rows * width)


def columns_of(rows: Rows) -> list[Column]:
    """The columns of a result that has rows."""
    return [tuple([row[i] for row in rows]) for i in range(len(rows[0]))]


class _Search:
    """One search with its budget; `gold` and `pred` are the columns not yet paired, ids the class of each row."""

    def __init__(self, budget: int) -> None:
        self._cells_left = budget

    def run(
        self, gold: list[Column], pred: list[Column], gold_ids: list[int], pred_ids: list[int], n_ids: int
    ) -> Match:
        """Pairs columns as long as there is no choice, then branches."""
        while True:
            groups = self._group(gold, pred, gold_ids, pred_ids)
            if groups is None:
                return Match.DIFFERENT if self._cells_left >= 0 else Match.UNDECIDED
            open_groups = [group for signature, group in groups.items() if len(signature) > n_ids]
            if not open_groups:
                return Match.EQUAL
            forced = [group for group in open_groups if len(group[0]) == 1]
            gold = [column for group in open_groups if len(group[0]) > 1 for column in group[0]]
            pred = [column for group in open_groups if len(group[0]) > 1 for column in group[1]]
            if not forced:
                return self._branch(min(open_groups, key=lambda group: len(group[0])), gold, pred, gold_ids, pred_ids)
            gold_ids, pred_ids, n_ids = _refine(
                gold_ids, [group[0][0] for group in forced], pred_ids, [group[1][0] for group in forced]
            )
            if Counter(gold_ids) != Counter(pred_ids):
                return Match.DIFFERENT

    def _group(
        self, gold: list[Column], pred: list[Column], gold_ids: list[int], pred_ids: list[int]
    ) -> dict[Signature, Group] | None:
        """Columns by signature, gold beside predicted; None if they differ or the budget is spent."""
        self._cells_left -= (len(gold) + len(pred)) * len(gold_ids)
        if self._cells_left < 0:
            return None
        groups: dict[Signature, Group] = defaultdict(lambda: ([], []))
        for column in gold:
            groups[_signature(gold_ids, column)][0].append(column)
        for column in pred:
            groups[_signature(pred_ids, column)][1].append(column)
        return groups if all(len(group[0]) == len(group[1]) for group in groups.values()) else None

    def _branch(
        self, group: Group, gold: list[Column], pred: list[Column], gold_ids: list[int], pred_ids: list[int]
    ) -> Match:
        """Tries every distinct predicted column of the group as partner of its first gold column."""
        chosen = group[0][0]
        gold_rest = _without(gold, chosen)
        for candidate in dict.fromkeys(group[1]):
            ids = _refine(gold_ids, [chosen], pred_ids, [candidate])
            match = self.run(gold_rest, _without(pred, candidate), *ids)
            if match is not Match.DIFFERENT:
                return match
        return Match.DIFFERENT


def _signature(ids: list[int], column: Column) -> Signature:
    """The bag of (row class, value) of a column."""
    keys = zip(ids, column, strict=True) if ids[-1] or any(ids) else column
    return frozenset(Counter(keys).items())


def _refine(
    gold_ids: list[int], gold_columns: list[Column], pred_ids: list[int], pred_columns: list[Column]
) -> tuple[list[int], list[int], int]:
    """New row classes after pairing these columns, shared by both sides, and how many classes there are."""
    numbers: dict[tuple[Any, ...], int] = {}
    gold = [numbers.setdefault(key, len(numbers)) for key in zip(gold_ids, *gold_columns, strict=True)]
    pred = [numbers.setdefault(key, len(numbers)) for key in zip(pred_ids, *pred_columns, strict=True)]
    return gold, pred, len(numbers)


def _without(columns: Sequence[Column], column: Column) -> list[Column]:
    """`columns` less one occurrence of this very object."""
    index = next(i for i, other in enumerate(columns) if other is column)
    return [*columns[:index], *columns[index + 1 :]]
