"""`soft_f1` against a literal reading of its formula, and on results that would be quadratic if done naively."""

import random
import time
from typing import Any

import pytest

from verl_sql.database.comparators.soft_f1 import soft_f1

Rows = list[tuple[Any, ...]]


def by_definition(gold_rows: Rows, pred_rows: Rows) -> float:
    """The sums of the definition, row by row and cell by cell."""
    if not gold_rows and not pred_rows:
        return 1.0
    gold, pred = list(dict.fromkeys(gold_rows)), list(dict.fromkeys(pred_rows))
    tp = fp = fn = 0.0
    for i in range(max(len(gold), len(pred))):
        if i >= len(pred):
            fn += 1
        elif i >= len(gold):
            fp += 1
        else:
            width = len(gold[i])
            tp += sum(cell in gold[i] for cell in pred[i]) / width
            fp += sum(cell not in gold[i] for cell in pred[i]) / width
            fn += sum(cell not in pred[i] for cell in gold[i]) / width
    precision = tp / (tp + fp) if tp + fp else 0.0
    recall = tp / (tp + fn) if tp + fn else 0.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def test_as_the_definition_says_on_random_results() -> None:
    rng = random.Random(5)
    cells = (1, 1.0, 2, "a", None, b"a")
    for _ in range(2000):
        gold_width, pred_width = rng.randint(1, 12), rng.randint(1, 12)
        gold = [tuple(rng.choices(cells, k=gold_width)) for _ in range(rng.randint(0, 6))]
        pred = [tuple(rng.choices(cells, k=pred_width)) for _ in range(rng.randint(0, 6))]
        assert soft_f1(gold, pred) == pytest.approx(by_definition(gold, pred), abs=1e-12)


def test_column_order_does_not_count_and_row_order_does() -> None:
    assert soft_f1([(1, 2), (3, 4)], [(2, 1), (4, 3)]) == 1.0
    assert soft_f1([(1, 2), (3, 4)], [(3, 4), (1, 2)]) == 0.0


def test_wide_and_long_results_stay_linear() -> None:
    gold = [tuple(range(i, i + 1000)) for i in range(100)]
    pred = [row[::-1] for row in gold]
    start = time.process_time()
    assert soft_f1(gold, pred) == 1.0
    long_gold = [(i, "x") for i in range(100_000)]
    assert soft_f1(long_gold, [("x", i) for i in range(100_000)]) == 1.0
    assert time.process_time() - start < 4.0
