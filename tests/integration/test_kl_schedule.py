"""The KL coefficient by training step."""

from typing import Any

import pytest

from verl_sql.integration.kl_schedule import KLSchedule

RETOOLSQL = [[0, 0.005], [40, 0.001], [80, 0.0]]


@pytest.mark.parametrize(
    ("step", "coefficient"), [(1, 0.005), (39, 0.005), (40, 0.001), (79, 0.001), (80, 0.0), (500, 0.0)]
)
def test_each_stage_holds_from_its_step_on(step: int, coefficient: float) -> None:
    assert KLSchedule.from_config(RETOOLSQL).at(step) == coefficient


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ([], "begin at step 0 or 1"),
        ([[2, 0.1]], "begin at step 0 or 1"),
        ([[0, 0.1], [0, 0.2]], "must rise"),
        ([[0, 0.1], [40, 0.2], [30, 0.1]], "must rise"),
        ([[0, -0.1]], "negative"),
        ([[0, "a lot"]], "pairs"),
        ([0, 0.1], "pairs"),
        ("linear", "pairs"),
    ],
)
def test_other_schedules_are_refused(stages: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        KLSchedule.from_config(stages)
