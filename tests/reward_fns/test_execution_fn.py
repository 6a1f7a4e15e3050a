"""Plain EX through the door that verl uses."""

from pathlib import Path

import pytest
from verl_sql.reward_fns import execution

from verl_sql.database.catalog import DatabaseNotFound

GOLD = "SELECT name FROM team"
EMPTY_GOLD = "SELECT name FROM team WHERE city = 'Bonn'"


def score(root: Path, completion: str, gold: str = GOLD, **kwargs):
    return execution.compute_score("test", completion, gold, {"db_id": "league"}, db_root=str(root), **kwargs)


@pytest.mark.parametrize(
    ("completion", "gold", "outcome", "expected"),
    [
        ("SELECT Name FROM team ORDER BY id DESC", GOLD, "match", 1.0),
        ("```sql\nSELECT name FROM team;\n```", GOLD, "match", 1.0),
        ("<think>easy</think><answer>SELECT name FROM team</answer>", GOLD, "match", 1.0),
        ("SELECT name FROM team UNION ALL SELECT name FROM team", GOLD, "match", 1.0),  # a set has no duplicates
        ("SELECT city FROM team", GOLD, "mismatch", 0.0),
        ("SELECT name FROM teams", GOLD, "pred_error", 0.0),
        ("DELETE FROM team", GOLD, "pred_forbidden", 0.0),
        ("I do not know.", GOLD, "no_answer", 0.0),
        ("", GOLD, "no_answer", 0.0),
        (f"-- {GOLD}", GOLD, "no_answer", 0.0),
        ("SELECT name FROM team WHERE 0", EMPTY_GOLD, "both_empty", 1.0),
        ("-- nothing", EMPTY_GOLD, "no_answer", 0.0),
        (";", EMPTY_GOLD, "no_answer", 0.0),
        ("SELECT", EMPTY_GOLD, "pred_error", 0.0),
        ("SELECT nam FROM team", "SELECT nam FROM team", "gold_error", 0.0),
    ],
)
def test_outcomes(league_root: Path, completion: str, gold: str, outcome: str, expected: float):
    row = score(league_root, completion, gold)
    assert (row["outcome"], row["score"], row["acc"]) == (outcome, expected, expected)


def test_strict_verdict_is_logged_beside_the_set(league_root: Path):
    row = score(league_root, "SELECT name FROM team UNION ALL SELECT name FROM team")
    assert (row["acc"], row["acc_bag"]) == (1.0, 0.0)


def test_comparator_can_be_chosen(league_root: Path):
    doubled = "SELECT name FROM team UNION ALL SELECT name FROM team"
    assert score(league_root, doubled, comparator="bag")["score"] == 0.0
    with pytest.raises(ValueError, match="comparator"):
        score(league_root, doubled, comparator="soft_f1")


def test_a_failing_gold_gives_every_completion_the_same_score(league_root: Path):
    rows = [score(league_root, text, "SELECT nope FROM team") for text in (GOLD, "", "SELECT 1", "DROP TABLE team")]
    assert {row["score"] for row in rows} == {0.0}
    assert {row["outcome"] for row in rows} == {"gold_error"}
    assert {row["skipped"] for row in rows} == {1.0}


def test_a_failing_gold_can_stop_the_run(league_root: Path):
    with pytest.raises(RuntimeError, match="no such column"):
        score(league_root, GOLD, "SELECT nope FROM team", on_gold_error="raise")


def test_a_timeout_is_an_outcome(league_root: Path):
    endless = "WITH RECURSIVE a(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT max(x) FROM a"
    assert score(league_root, endless, timeout=0.2)["outcome"] == "pred_timeout"


def test_missing_database_says_what_to_set(league_root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("VERL_SQL_DB_ROOT", raising=False)
    with pytest.raises(DatabaseNotFound, match="VERL_SQL_DB_ROOT"):
        execution.compute_score("test", GOLD, GOLD, {"db_id": "league"})
    with pytest.raises(DatabaseNotFound, match="nowhere"):
        execution.compute_score("test", GOLD, GOLD, {"db_id": "nowhere"}, db_root=str(league_root))


def test_root_from_the_environment(league_root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VERL_SQL_DB_ROOT", str(league_root))
    assert execution.compute_score("test", GOLD, GOLD, {"db_id": "league"})["score"] == 1.0


def test_unknown_argument_is_warned_about(league_root: Path, caplog: pytest.LogCaptureFixture):
    score(league_root, GOLD, db_rot="x")
    assert "db_rot" in caplog.text
