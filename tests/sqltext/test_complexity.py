"""Counting constructs, and the split it gives on BIRD."""

import json
from collections import Counter
from pathlib import Path

import pytest

from verl_sql.sqltext.complexity import Complexity, complexity, count_constructs


@pytest.mark.parametrize(
    ("sql", "constructs"),
    [
        ("SELECT a FROM t", 1),
        ("SELECT count(*) FROM t", 2),
        ("SELECT DISTINCT a FROM t WHERE b = 1 AND c > 2", 5),
        ("SELECT a FROM t JOIN u ON t.x = u.x", 2),
        ("SELECT a FROM t WHERE b IN (SELECT c FROM u)", 4),
        ("SELECT a FROM t UNION SELECT b FROM u", 3),
        ("SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > 1 ORDER BY count(*) DESC LIMIT 3", 9),
        ("WITH s AS (SELECT 1) SELECT * FROM s", 2),
        ("not SQL at all (", None),
    ],
)
def test_counts(sql: str, constructs: int | None) -> None:
    assert count_constructs(sql) == constructs


def test_tiers() -> None:
    assert complexity("SELECT a FROM t") is Complexity.SIMPLE
    assert (
        complexity("SELECT a, count(*) FROM t GROUP BY a HAVING count(*) > 1 ORDER BY count(*) LIMIT 3")
        is Complexity.MEDIUM
    )
    assert complexity("not SQL (") is Complexity.UNKNOWN


def test_split_on_bird_dev_beside_its_labels(shared_dir: Path) -> None:
    """On BIRD train the tiers are 70.0 %, 25.3 % and 4.7 %; the paper has 70.6 %, 23.6 % and 5.8 %."""
    rows = json.loads((shared_dir / "data/bird/dev.json").read_text(encoding="utf-8"))
    table = Counter((row["difficulty"], str(complexity(row["SQL"]))) for row in rows)
    assert table == {
        ("simple", "simple"): 804,
        ("simple", "medium"): 116,
        ("simple", "challenging"): 5,
        ("moderate", "simple"): 241,
        ("moderate", "medium"): 193,
        ("moderate", "challenging"): 30,
        ("challenging", "simple"): 39,
        ("challenging", "medium"): 65,
        ("challenging", "challenging"): 41,
    }
