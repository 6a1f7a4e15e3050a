"""Reward-SQL's outcome reward."""

from pathlib import Path

import pytest
from verl_sql.reward_fns.reward_sql import compute_score

GOLD = "SELECT count(*) FROM player WHERE age = 30"
ONE = "WITH a AS (SELECT * FROM player WHERE age = 30) SELECT count(*) FROM a"
TWO = "WITH a AS (SELECT * FROM player), b AS (SELECT * FROM a WHERE age = 30) SELECT count(*) FROM b"


def score(root: Path, completion: str, **kwargs):
    return compute_score("test", completion, GOLD, {"db_id": "league"}, db_root=str(root), **kwargs)


@pytest.mark.parametrize(
    ("completion", "expected", "steps"),
    [
        (ONE, 1.0, 1),
        (TWO, 1.0, 2),
        (f"```sql\n{TWO};\n```", 1.0, 2),
        ("SELECT count(*) FROM player WHERE age = 30", 1.0, 1),  # no CTE: the query is its own single step
        ("WITH a AS (SELECT * FROM player) SELECT count(*) FROM a", 0.0, 1),
        ("", 0.0, 0),
    ],
)
def test_outcome_reward_and_steps(league_root: Path, completion: str, expected: float, steps: int):
    row = score(league_root, completion)
    assert (row["score"], row["outcome_reward"], row["n_steps"]) == (expected, expected, steps)


def test_unknown_mode_is_refused(league_root: Path):
    with pytest.raises(ValueError, match="rule_or"):
        score(league_root, ONE, mode="nonsense")
