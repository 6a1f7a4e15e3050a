"""Pairs of right and wrong candidates, by hand."""

from dataclasses import astuple

from verl_sql.evaluation.candidates import Answered, Candidate
from verl_sql.evaluation.selection import OUTCOME_MODEL, PRM_MEAN, SELECTORS
from verl_sql.evaluation.separation import Separation, separation, separations

CTE = "WITH a AS (SELECT 1)"


def candidate(sql: str, score: float, right: bool, status: str = "ok") -> Candidate:
    return Candidate(sql, sql, status, sql, 1, (score,), 1 - score, right)


QUESTION = Answered(
    "k", "dev", "league", "g", "", candidate("SELECT 9", 0.9, False),
    (
        candidate(f"{CTE} SELECT * FROM a", 0.6, True),
        candidate(f"{CTE} SELECT * FROM a", 0.6, True),  # the same query counts once
        candidate(f"{CTE} SELECT 2", 0.6, False),  # only the final query differs
        candidate("SELECT 3", 0.7, False),
        candidate("SELECT 4", 0.8, True),
        candidate("SELECT", 1.0, False, "error"),
    ),
)  # fmt: skip


def test_by_hand() -> None:
    # CTE right: tied with the other CTE, below SELECT 3; SELECT 4: above both
    found = separation([QUESTION], PRM_MEAN.score)
    assert (astuple(found), found.auc) == ((4, 2, 1, 1), 2.5 / 4)
    assert separations([QUESTION], SELECTORS)["outcome_model"]["auc"] == 1.5 / 4
    assert separations([QUESTION], [OUTCOME_MODEL]).keys() == {"outcome_model"}


def test_no_pairs() -> None:
    assert Separation().auc == 0.5
    assert separation([], PRM_MEAN.score).pairs == 0
