"""Numbers of scored steps, worked out by hand."""

import doctest

import pytest

from verl_sql.prm import metrics
from verl_sql.prm.metrics import FINAL, ScoredStep, accuracy, auc, calibration_error, position_means, report


@pytest.mark.parametrize(
    ("scores", "labels", "value"),
    [
        ([0.1, 0.9], [0, 1], 1.0),
        ([0.9, 0.1], [0, 1], 0.0),
        ([0.5, 0.5, 0.5], [0, 1, 1], 0.5),
        ([0.2, 0.4, 0.4, 0.8], [0, 0, 1, 1], 3.5 / 4),
        ([0.3], [1], None),
        ([], [], None),
    ],
)
def test_auc(scores: list[float], labels: list[int], value: float | None) -> None:
    assert auc(scores, labels) == value


def test_calibration_and_accuracy() -> None:
    assert calibration_error([0.05, 0.05, 1.0, 0.5], [0, 1, 1, 1]) == pytest.approx((0.9 + 0.0 + 0.5) / 4)
    assert accuracy([0.5, 0.49, 0.51], [1, 1, 0]) == pytest.approx(1 / 3)
    assert calibration_error([], []) is None
    assert accuracy([], []) is None


def test_a_report_by_position_and_the_baseline() -> None:
    steps = [ScoredStep(1, 1, 0.9), ScoredStep(1, 0, 0.2), ScoredStep(2, 0, 0.7), ScoredStep(2, 1, 0.6)]
    found = report(steps, {1: 0.75, 2: 0.25})
    assert (found["steps"], found["correct"], found["auc"]) == (4, 0.5, 0.75)
    assert found["by_position"]["1"]["auc"] == 1.0
    assert found["by_position"]["2"]["auc"] == 0.0
    assert found["position_only_auc"] == 0.5
    assert report([ScoredStep(1, 1, 0.9), ScoredStep(2, 0, 0.9)], {1: 0.9, 2: 0.1})["position_only_auc"] == 1.0


def test_final_queries_are_no_steps() -> None:
    steps = [ScoredStep(1, 1, 0.9), ScoredStep(1, 0, 0.2)]
    finals = [ScoredStep(FINAL, 0, 0.9), ScoredStep(FINAL, 1, 0.2)]
    both = report([*steps, *finals], {FINAL: 0.5, 1: 0.5})
    assert {**both, "final_query": None} == {**report(steps, {1: 0.5}), "final_query": None}
    assert (both["final_query"]["auc"], both["final_query"]["steps"]) == (0.0, 2)
    outcome = report(finals, {FINAL: 0.5})
    assert (outcome["auc"], outcome["by_position"], "final_query" in outcome) == (0.0, {}, False)


def test_position_means() -> None:
    assert position_means([(2, 0), (1, 1), (1, 0), (1, 1), (1, 1)]) == {1: 0.75, 2: 0.0}


def test_examples() -> None:
    assert doctest.testmod(metrics).failed == 0
