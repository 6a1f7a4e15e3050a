"""Where an ORDER BY is at the top level, and where it is not."""

import pytest

from verl_sql.database.comparators.ordered import ordered, orders_rows

TOP = [
    "SELECT a FROM t ORDER BY a",
    "select a from t order\n\tby a desc limit 3",
    "SELECT a FROM t ORDER /* so */ BY a",
    "SELECT a FROM t ORDER -- so\nBY a",
    "SELECT a FROM t UNION SELECT b FROM u ORDER BY 1",
    "WITH c AS (SELECT a FROM t) SELECT a FROM c ORDER BY a",
    "SELECT ')' FROM t ORDER BY a",
    'SELECT a AS "(" FROM t ORDER BY a;',
    "SELECT a FROM t WHERE b = 'it''s (' ORDER BY a",
]
NOT_TOP = [
    "SELECT a FROM t",
    "SELECT a FROM (SELECT a FROM t ORDER BY a)",
    "WITH c AS (SELECT a FROM t ORDER BY a LIMIT 3) SELECT a FROM c",
    "SELECT rank() OVER (ORDER BY a) FROM t",
    "SELECT group_concat(a ORDER BY b) FROM t",
    "SELECT a FROM t WINDOW w AS (PARTITION BY b ORDER BY a)",
    "SELECT 'x ORDER BY y' FROM t",
    'SELECT a AS "ORDER BY" FROM t',
    "SELECT a AS [order by] FROM t",
    "SELECT a AS `order by` FROM t",
    "SELECT a FROM t -- ORDER BY a",
    "SELECT a FROM t /* ORDER BY a",
    "SELECT border, bystander FROM t",
    "",
]


@pytest.mark.parametrize("sql", TOP)
def test_top_level(sql: str) -> None:
    assert orders_rows(sql)


@pytest.mark.parametrize("sql", NOT_TOP)
def test_not_top_level(sql: str) -> None:
    assert not orders_rows(sql)


def test_without_top_level_order_it_is_a_bag() -> None:
    assert ordered([(1,), (2,), (2,)], [(2,), (1,), (2,)], NOT_TOP[1])
    assert not ordered([(1,), (2,), (2,)], [(2,), (1,), (1,)], NOT_TOP[1])


def test_long_text_is_scanned_in_linear_time() -> None:
    assert not orders_rows("SELECT '" + "order by ''" * 50_000)
    assert not orders_rows("order/*" * 50_000)
    assert orders_rows("SELECT " + "(a)," * 100_000 + "a FROM t ORDER BY a")
