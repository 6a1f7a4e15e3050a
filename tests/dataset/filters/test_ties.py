"""LIMITs that cut through ties: the probes, and what they say on a real database."""

import sqlite3

import pytest

from verl_sql.dataset.filters.ties import tie_probes
from verl_sql.dataset.reasons import Reason

ROWS = "CREATE TABLE t (a, b, c); INSERT INTO t VALUES (1, 'x', 1), (1, 'y', 1), (2, 'y', 1), (3, 'z', 2)"


def undetermined(sql: str) -> list[Reason]:
    connection = sqlite3.connect(":memory:")
    connection.executescript(ROWS)
    columns = len(connection.execute(sql).description)
    found = []
    for probe in tie_probes(sql, columns):
        up, down = (sorted(map(repr, connection.execute(q))) for q in (probe.upwards, probe.downwards))
        if up != down:
            found.append(probe.reason)
    return found


@pytest.mark.parametrize(
    ("sql", "reasons"),
    [
        ("SELECT b FROM t ORDER BY a LIMIT 1", [Reason.TIED_LIMIT]),
        ("SELECT b FROM t ORDER BY a LIMIT 2", []),
        ("SELECT b FROM t ORDER BY a DESC LIMIT 1", []),
        ("SELECT c FROM t ORDER BY a LIMIT 1", []),
        ("SELECT b FROM t ORDER BY a LIMIT 1 OFFSET 1", [Reason.TIED_LIMIT]),
        ("SELECT b FROM t LIMIT 2", [Reason.UNORDERED_LIMIT]),
        ("SELECT b FROM t LIMIT 4", []),
        ("SELECT max(b) FROM t LIMIT 1", []),
        ("SELECT b, count(*) FROM t GROUP BY b ORDER BY count(*) LIMIT 1", [Reason.TIED_LIMIT]),
        ("SELECT DISTINCT c FROM t ORDER BY c LIMIT 1", []),
        ("SELECT a FROM t UNION SELECT c FROM t ORDER BY 1 LIMIT 1", []),
        ("SELECT count(*) FROM t WHERE b = (SELECT b FROM t ORDER BY a LIMIT 1)", [Reason.NESTED_TIE]),
        ("SELECT count(*) FROM t WHERE c = (SELECT c FROM t ORDER BY a LIMIT 1)", []),
        ("WITH s AS (SELECT a, b FROM t ORDER BY a LIMIT 1) SELECT b FROM s", [Reason.NESTED_TIE]),
        ("WITH s AS (SELECT * FROM t ORDER BY a LIMIT 1) SELECT b FROM s", []),
        ("SELECT 'LIMIT' FROM t -- LIMIT 1", []),
        ("SELECT b FROM (SELECT * FROM t) ORDER BY a LIMIT 1 -- done", [Reason.TIED_LIMIT]),
    ],
)
def test_on_a_real_database(sql: str, reasons: list[Reason]) -> None:
    assert undetermined(sql) == reasons


def test_no_limit_no_probe() -> None:
    assert tie_probes("SELECT a FROM t ORDER BY a", 1) == []
