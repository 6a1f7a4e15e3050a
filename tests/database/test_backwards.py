"""A connection that reads and adds in another order: what it changes, what it does not, and who can switch it on."""

import sqlite3

import pytest

from verl_sql.database.backwards import added, read_backwards
from verl_sql.database.executor import Executor


@pytest.fixture
def both(tmp_path):
    """The same rows on a plain connection and on one that reads backwards."""
    made = [sqlite3.connect(":memory:") for _ in range(2)]
    for connection in made:
        connection.executescript(
            "CREATE TABLE t (k TEXT, n INT, x REAL, s TEXT);"
            "INSERT INTO t VALUES ('a', 1, 0.1, '2.5kg'), ('a', 2, 0.7, '3'), ('b', NULL, 0.2, 'x'),"
            "('b', 4, NULL, '-1e1'), ('c', NULL, NULL, NULL)"
        )
    read_backwards(made[1])
    return made


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, sum(n), avg(n), total(n), typeof(sum(n)), typeof(total(n)) FROM t GROUP BY k ORDER BY k",
        "SELECT sum(s), avg(s), total(s) FROM t",
        "SELECT k, sum(DISTINCT n) FROM t GROUP BY k ORDER BY k",
        "SELECT sum(x) FILTER (WHERE k = 'b') FROM t",
        "SELECT sum(n), avg(n), total(n) FROM t WHERE 0",
        "SELECT rowid, sum(n) OVER (ORDER BY rowid ROWS 1 PRECEDING) FROM t ORDER BY rowid",
        "SELECT count(*), min(x), max(x), group_concat(n, '') <> '' FROM t",
    ],
)
def test_what_is_determined_stays(both, query):
    plain, back = (connection.execute(query).fetchall() for connection in both)
    assert plain == back


def test_rows_come_from_the_last(both):
    plain, back = (connection.execute("SELECT rowid FROM t").fetchall() for connection in both)
    assert back == plain[::-1]


def test_sums_are_added_from_the_smallest():
    assert added([1e16, 1.0, -1e16]) in (0.0, 1.0)  # 1.0 where SQLite corrects its sums
    plain, back = 0.7 + 0.1 + 0.3, 0.1 + 0.3 + 0.7
    assert plain != back
    connection = sqlite3.connect(":memory:")
    read_backwards(connection)
    (found,) = connection.execute(
        "SELECT sum(x) FROM (SELECT 0.7 AS x UNION ALL SELECT 0.1 UNION ALL SELECT 0.3)"
    ).fetchone()
    assert found == added([0.1, 0.3, 0.7])


def test_no_query_can_switch_it_on(league_root):
    with Executor(1) as executor:
        found = executor.execute(league_root / "league/league.sqlite", "PRAGMA reverse_unordered_selects=ON")
    assert str(found.status) == "forbidden"
