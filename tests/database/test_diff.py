"""The result diff: which rows it calls missing, extra and changed, and how it shows them."""

import time

from verl_sql.database.diff import PAIRING_ROWS, CellChange, format_cell, result_diff


def test_equal_results() -> None:
    diff = result_diff([(1, "a"), (2, "b")], [(1, "a"), (2, "b")])
    assert diff.same_bag
    assert not diff.order_differs
    assert str(diff) == "2 equal rows"


def test_another_order() -> None:
    diff = result_diff([(1,), (2,)], [(2,), (1,)])
    assert diff.same_bag
    assert diff.order_differs
    assert str(diff) == "2 equal rows in another order"


def test_missing_and_extra_count_repeats() -> None:
    diff = result_diff([("a",), ("a",), ("b",)], [("a",), ("c",), ("c",)])
    assert diff.n_equal == 1
    assert diff.missing == (("a",), ("b",))
    assert diff.extra == (("c",), ("c",))
    assert diff.changed == ()


def test_rows_that_share_half_of_their_cells_are_changed() -> None:
    gold = [("Ann", 30, "Oslo"), ("Bob", 25, "Rome")]
    pred = [("Bob", 25, "Rom"), ("Ann", 31, "Oslo")]
    diff = result_diff(gold, pred, ("name", "age", "city"))
    assert [change.cells for change in diff.changed] == [
        (CellChange(1, "age", 30, 31),),
        (CellChange(2, "city", "Rome", "Rom"),),
    ]
    assert diff.missing == diff.extra == ()
    assert "~ ('Ann', 30, 'Oslo')  age: 30 -> 31" in str(diff)


def test_the_most_alike_rows_are_paired() -> None:
    diff = result_diff([(1, 2, 3, 4)], [(1, 2, 0, 0), (1, 2, 3, 0)])
    assert [change.pred for change in diff.changed] == [(1, 2, 3, 0)]
    assert diff.extra == ((1, 2, 0, 0),)


def test_different_widths_are_told() -> None:
    diff = result_diff([("Ann", 30)], [("Ann",)], ("name", "age"))
    assert diff.summary() == (
        "gold 1 rows, predicted 1: 0 equal, 1 changed, 0 missing, 0 extra; gold has 2 columns, predicted 1"
    )
    assert "2 cells -> 1" in str(diff)
    assert result_diff([], [], ("a", "b"), ("a",)).gold_width == 2


def test_long_results_are_cut_and_the_rest_counted() -> None:
    text = str(result_diff([(i, "gold") for i in range(15)], []))
    assert text.splitlines()[-1] == "- … 5 more"
    assert len(text.splitlines()) == 12


def test_cells_read_as_sql() -> None:
    assert format_cell(None) == "NULL"
    assert format_cell("it's\n") == "'it''s\\n'"
    assert format_cell(b"\x00\xff") == "X'00ff'"
    assert format_cell(1.0) == "1.0"
    assert format_cell("x" * 50) == "'" + "x" * 40 + "…' (50 long)"


def test_large_results_take_linear_time() -> None:
    start = time.process_time()
    diff = result_diff([(i, "gold") for i in range(50_000)], [(i, "pred") for i in range(50_000)])
    assert time.process_time() - start < 4.0
    assert len(diff.changed) == PAIRING_ROWS
    assert len(diff.missing) == len(diff.extra) == 50_000 - PAIRING_ROWS
