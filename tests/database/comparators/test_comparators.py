"""Every comparator on hand-made results whose values were worked out by hand (`cases.jsonl`), and the registry."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_sql.database.comparators import (
    VALUE_KEYS,
    ResultView,
    check_comparators,
    compare_results,
    failed_values,
    results_equal,
    value_keys,
)

CASES = [json.loads(line) for line in Path(__file__).with_name("cases.jsonl").read_text(encoding="utf-8").splitlines()]
PLAIN, SORTED = "SELECT a FROM t", "SELECT a FROM t ORDER BY a"


SMALL = st.lists(st.tuples(st.sampled_from([None, 0, 1, 1.0, "1", b"1"])), max_size=4)


def rows(cells: list[list[Any]]) -> list[tuple[Any, ...]]:
    return [tuple(row) for row in cells]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_values(case: dict[str, Any]) -> None:
    gold, pred = rows(case["gold"]), rows(case["pred"])
    values = compare_results(VALUE_KEYS, ResultView((), gold), ResultView((), pred), PLAIN)
    for key in ("bird_set", "bag", "ordered", "soft_f1", "cp", "cr", "tc"):
        assert values[key] == pytest.approx(case[key], abs=1e-12), key
    in_order = compare_results(["ordered"], ResultView((), gold), ResultView((), pred), SORTED)
    assert in_order == {"ordered": case["list"]}
    assert results_equal(gold, pred, False) == case["suite"]
    assert results_equal(gold, pred, True) == case["suite_list"]


def test_bytes_equal_neither_text_nor_other_bytes() -> None:
    def same(gold: Any, pred: Any) -> float | None:
        return compare_results(["bird_set"], ResultView((), [(gold,)]), ResultView((), [(pred,)]), PLAIN)["bird_set"]

    assert same(b"1", b"1") == 1.0
    assert same(b"1", "1") == 0.0
    assert same(b"1", b"1\x00") == 0.0
    assert same(True, 1) == 1.0


def test_only_what_was_asked_for_and_test_suite_elsewhere() -> None:
    view = ResultView(("a",), [(1,)])
    assert compare_results(["bag", "test_suite"], view, view, PLAIN) == {"bag": 1.0}
    assert compare_results([], view, view, PLAIN) == {}


def test_failed_queries_match_nothing() -> None:
    assert failed_values(VALUE_KEYS, gold_ok=True) == dict.fromkeys(value_keys(VALUE_KEYS), 0.0)
    without_gold = failed_values(VALUE_KEYS, gold_ok=False)
    assert [key for key, value in without_gold.items() if value is None] == ["cp", "cr", "tc"]
    assert set(without_gold.values()) == {0.0, None}


def test_names_are_checked_and_put_in_the_order_of_the_output() -> None:
    assert check_comparators(["qatch", "bird_set", "qatch"]) == ("bird_set", "qatch")
    assert value_keys(["qatch", "bird_set"]) == ("bird_set", "cp", "cr", "tc")
    with pytest.raises(ValueError, match=r"no comparator birdset; there are bird_set, bag"):
        check_comparators(["birdset"])


@given(SMALL, SMALL)
def test_bird_set_and_bag_together_are_what_they_are_alone(
    gold: list[tuple[Any, ...]], pred: list[tuple[Any, ...]]
) -> None:
    views = ResultView((), gold), ResultView((), pred)
    alone = compare_results(["bird_set"], *views, PLAIN) | compare_results(["bag"], *views, PLAIN)
    assert compare_results(["bird_set", "bag"], *views, PLAIN) == alone
