"""Golds whose result depends on the order in which rows are read."""

import json
import sqlite3
from pathlib import Path

import pytest

from verl_sql.database.backwards import COMPENSATED
from verl_sql.database.executor import Executor
from verl_sql.dataset.filters.row_order import RowOrderCheck, same_but_digits
from verl_sql.dataset.reasons import Reason


@pytest.fixture
def check(executor: Executor, backwards: Executor) -> RowOrderCheck:
    return RowOrderCheck(executor, backwards, 10.0)


def reasons(check: RowOrderCheck, golds: list[tuple[Path, str]]) -> list[list[Reason]]:
    ran = check.forwards.execute_many(golds, digest=True)
    found = check.findings([(*gold, execution) for gold, execution in zip(golds, ran, strict=True)])
    return [[finding.reason for finding in findings] for findings in found]


def test_reasons(check: RowOrderCheck, tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "t.sqlite").executescript(
        "CREATE TABLE t (k TEXT, x REAL); INSERT INTO t VALUES ('a', 0.7), ('a', 0.1), ('a', 0.3), ('b', 0.5)"
    )
    golds = [
        "SELECT k, sum(x) FROM t GROUP BY k",
        "SELECT group_concat(k) FROM t",
        "SELECT k, x FROM t",
        "SELECT k, count(*), max(x) FROM t GROUP BY k",
        "SELECT nosuch FROM t",
    ]
    found = reasons(check, [(tmp_path / "t.sqlite", gold) for gold in golds])
    assert found[1:] == [[Reason.ROW_ORDER], [], [], []]
    assert found[0] == ([] if COMPENSATED else [Reason.FLOAT_SUM])


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ([("a", 0.1 + 0.2)], [("a", 0.3)], True),
        ([(1, 2.0), (3, 4.0)], [(3, 4.0), (1, 2)], True),
        ([(1.0,)], [(1.1,)], False),
        ([(1,)], [("1",)], False),
        ([(1,), (1,)], [(1,)], False),
        ([(None, "x")], [("x", None)], False),
        ([(None, b"a")], [(None, b"a")], True),
    ],
)
def test_the_same_but_for_digits(first: list, second: list, same: bool) -> None:
    assert same_but_digits(first, second) is same


@pytest.mark.skipif(COMPENSATED, reason="this SQLite corrects its sums")
def test_spider_dev(check: RowOrderCheck, shared_dir: Path) -> None:
    """Nine, among them the five whose plain scan turned around gives other digits."""
    root = shared_dir / "data/spider_dev"
    rows = [
        r for r in json.loads((root / "dev.json").read_text()) if r["db_id"] in ("car_1", "museum_visit", "world_1")
    ]
    found = reasons(check, [(root / f"database/{r['db_id']}/{r['db_id']}.sqlite", r["query"]) for r in rows])
    named = {r["question_id"]: f for r, f in zip(rows, found, strict=True) if f}
    assert set(named) == {117, 118, 425, 718, 719, 764, 765, 798, 799}
    assert all(f == [Reason.FLOAT_SUM] for f in named.values())
