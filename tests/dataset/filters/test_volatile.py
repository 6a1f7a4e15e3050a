"""Golds that read the clock or draw at random."""

import json
from pathlib import Path

import pytest

from verl_sql.dataset.filters.volatile import volatile_findings
from verl_sql.dataset.reasons import Reason


@pytest.mark.parametrize(
    ("sql", "reasons"),
    [
        ("SELECT date('now')", [Reason.TIME_DEPENDENT]),
        ("SELECT strftime('%Y', ' NOW ')", [Reason.TIME_DEPENDENT]),
        ('SELECT date("now")', [Reason.TIME_DEPENDENT]),
        ("SELECT CURRENT_TIMESTAMP", [Reason.TIME_DEPENDENT]),
        ("SELECT current_date", [Reason.TIME_DEPENDENT]),
        ("SELECT DATETIME()", [Reason.IMPLICIT_TIME]),
        ("SELECT strftime('%Y')", [Reason.IMPLICIT_TIME]),
        ("SELECT strftime('%Y', max(a, b))", []),
        ("SELECT date(birthday), time FROM t", []),
        ("SELECT random() FROM t", [Reason.RANDOM]),
        ("SELECT random FROM t", []),
        ("SELECT 1 -- now, CURRENT_DATE", []),
        ("SELECT a FROM t WHERE b = 'right now'", []),
        ("SELECT 'CURRENT_DATE'", []),
    ],
)
def test_reasons(sql: str, reasons: list[Reason]) -> None:
    assert [finding.reason for finding in volatile_findings(sql)] == reasons


def test_bird_dev_has_sixteen_and_one_that_is_implicit(shared_dir: Path) -> None:
    rows = json.loads((shared_dir / "data/bird/dev.json").read_text(encoding="utf-8"))
    found = {
        row["question_id"]: volatile_findings(row["SQL"])[0].reason for row in rows if volatile_findings(row["SQL"])
    }
    asked = [number for number, reason in found.items() if reason is Reason.TIME_DEPENDENT]
    assert asked == [194, 898, 1118, 1121, 1156, 1161, 1211, 1227, 1229, 1232, 1235, 1236, 1239, 1243, 1257, 1260]
    assert [number for number in found if number not in asked] == [1031]
