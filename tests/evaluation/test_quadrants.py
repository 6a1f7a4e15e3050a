"""The quadrants of PR and OR, by hand."""

from dataclasses import astuple

import pytest

from verl_sql.evaluation.candidates import Candidate
from verl_sql.evaluation.quadrants import quadrants


def answer(right: bool, *scores: float) -> Candidate:
    return Candidate("t", "SELECT 1", "ok", "d", len(scores), scores, None, right)


ANSWERS = [
    answer(True, 0.9, 0.7),
    answer(True, 1.0, 0.0),
    answer(False, 0.6),
    answer(False, 0.1),
    answer(False),
    answer(True, 0.9, 0.05),
    answer(False, 0.5, 0.4),
    answer(True, 0.8),
]


def test_by_hand() -> None:
    assert astuple(quadrants(ANSWERS)) == (3 / 8, 1 / 8, 3 / 8, 1 / 8)


def test_threshold() -> None:
    assert astuple(quadrants(ANSWERS, 0.7)) == (2 / 8, 0.0, 4 / 8, 2 / 8)


def test_an_unscored_answer_has_none() -> None:
    with pytest.raises(ValueError, match="without step scores"):
        quadrants([Candidate("t", "SELECT 1", "ok")])
    with pytest.raises(ValueError, match="no answers"):
        quadrants([])
