"""Equality under permuted columns: against a literal reading of the definition, and on results built to hurt."""

import logging
import random
import time
from collections import Counter
from itertools import combinations, permutations, product
from typing import Any

import pytest

from verl_sql.database.comparators.permutation import SEARCH_CELLS
from verl_sql.database.comparators.test_suite import Match, match_results, results_equal

Rows = list[tuple[Any, ...]]


def by_definition(gold: Rows, pred: Rows, order_matters: bool) -> bool:
    """All permutations, and the evaluator's first test of rows sorted by text and type."""
    if not gold and not pred:
        return True
    if len(gold) != len(pred) or len(gold[0]) != len(pred[0]):
        return False
    sorted_gold, sorted_pred = (
        [tuple(sorted(row, key=lambda cell: str(cell) + str(type(cell)))) for row in rows] for rows in (gold, pred)
    )
    if sorted_gold != sorted_pred if order_matters else set(sorted_gold) != set(sorted_pred):
        return False
    permuted = ([tuple(row[i] for i in order) for row in pred] for order in permutations(range(len(gold[0]))))
    return any(gold == rows if order_matters else Counter(gold) == Counter(rows) for rows in permuted)


def random_pair(rng: random.Random) -> tuple[Rows, Rows]:
    """A small result, and the same with rows and columns shuffled and often one cell changed."""
    width, height = rng.randint(1, 4), rng.randint(0, 5)
    cells = rng.choice([(1, 2), (1, 1.0, 1.5, 0.0, -0.0), (None, "1", 1, b"1"), (1, 2, 3, "a", "b", None)])
    gold = [tuple(rng.choice(cells) for _ in range(width)) for _ in range(height)]
    order = rng.sample(range(width), width)
    pred = [tuple(row[i] for i in order) for row in gold]
    if rng.random() < 0.5:
        rng.shuffle(pred)
    if pred and rng.random() < 0.5:
        row, column = rng.randrange(height), rng.randrange(width)
        changed = list(pred[row])
        changed[column] = rng.choice(cells)
        pred[row] = tuple(changed)
    return gold, pred


def test_as_the_definition_says_on_random_results() -> None:
    rng = random.Random(7)
    seen: Counter[bool] = Counter()
    for _ in range(3000):
        gold, pred = random_pair(rng)
        for order_matters in (False, True):
            expected = by_definition(gold, pred, order_matters)
            assert results_equal(gold, pred, order_matters) is expected, (gold, pred, order_matters)
            seen[expected] += 1
    assert min(seen[True], seen[False]) > 1000


def shuffled(rows: Rows, seed: int = 3) -> Rows:
    """Rows and columns in another order."""
    rng = random.Random(seed)
    order = rng.sample(range(len(rows[0])), len(rows[0]))
    pred = [tuple(row[i] for i in order) for row in rows]
    rng.shuffle(pred)
    return pred


def incidence(edges: list[tuple[int, int]], n_vertices: int) -> Rows:
    """A graph as a result: a row an edge, a column a vertex, 2 where they touch."""
    return [tuple(2 if vertex in edge else 1 for vertex in range(n_vertices)) for edge in edges]


def cycle(first: int, length: int) -> list[tuple[int, int]]:
    return [(first + i, first + (i + 1) % length) for i in range(length)]


def lattice(steps: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Two of the 16 points of a 4 x 4 torus are joined when their difference is one of the steps."""
    return [
        (a, b) for a, b in combinations(range(16), 2) if ((b // 4 - a // 4) % 4, (b - a) % 4) in steps
    ]  # fmt: skip


ROOK = lattice({(0, 1), (0, 2), (0, 3), (1, 0), (2, 0), (3, 0)})
SHRIKHANDE = lattice({(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)})


def moved(edges: list[tuple[int, int]], by: int) -> list[tuple[int, int]]:
    return [(a + by, b + by) for a, b in edges]


ALL_TENS = list(product((1, 2), repeat=10))


@pytest.mark.parametrize(
    ("gold", "pred", "expected"),
    [
        (ALL_TENS, shuffled(ALL_TENS), Match.EQUAL),
        ([*ALL_TENS[:-1], ALL_TENS[1]], [*ALL_TENS[:-1], ALL_TENS[512]], Match.EQUAL),
        ([*ALL_TENS[:-1], ALL_TENS[1]], [*ALL_TENS[:-1], ALL_TENS[3]], Match.DIFFERENT),
        (incidence(cycle(0, 10), 10), shuffled(incidence(cycle(0, 10), 10)), Match.EQUAL),
        (incidence(cycle(0, 10), 10), shuffled(incidence(cycle(0, 5) + cycle(5, 5), 10)), Match.DIFFERENT),
        (incidence(ROOK, 16), shuffled(incidence(ROOK, 16)), Match.EQUAL),
        (incidence(ROOK, 16), shuffled(incidence(SHRIKHANDE, 16)), Match.DIFFERENT),
        ([tuple(range(12))] * 9, shuffled([tuple(range(12))] * 9), Match.EQUAL),
        ([(1,) * 900 + (2,) * 900] * 3, [(2,) * 900 + (1,) * 900] * 3, Match.EQUAL),
    ],
    ids=["all", "all but one", "all but another", "ring", "two rings", "rook", "not rook", "constant", "very wide"],
)
def test_many_like_columns_take_no_time(gold: Rows, pred: Rows, expected: Match) -> None:
    start = time.process_time()
    assert match_results(gold, pred, False) is expected
    assert time.process_time() - start < 2.0


def test_a_search_that_hits_its_bound_says_so_and_does_not_match(caplog: pytest.LogCaptureFixture) -> None:
    gold = incidence(ROOK + moved(ROOK, 16) + moved(ROOK, 32) + moved(SHRIKHANDE, 48), 64)
    pred = shuffled(incidence(ROOK + moved(ROOK, 16) + moved(SHRIKHANDE, 32) + moved(SHRIKHANDE, 48), 64))
    start = time.process_time()
    assert match_results(gold, pred, False) is Match.UNDECIDED
    assert time.process_time() - start < 5.0
    with caplog.at_level(logging.WARNING):
        assert results_equal(gold, pred, False) is False
    assert "192 rows of 64 columns count as different" in caplog.text
    assert f"within {SEARCH_CELLS} cells" in caplog.text


def test_large_results_are_linear() -> None:
    rng = random.Random(1)
    gold = [(i, rng.random(), rng.choice("abc"), i % 7) for i in range(20_000)]
    start = time.process_time()
    assert results_equal(gold, shuffled(gold), False)
    assert not results_equal(gold, [*shuffled(gold)[1:], (1, 2, 3, 4)], False)
    assert time.process_time() - start < 4.0
