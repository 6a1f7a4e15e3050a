"""From the samples of a batch to the tensors of the estimators, and to metrics and dumps."""

import json
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from verl_sql.integration.step_batch import (  # noqa: E402
    Needs,
    StepsMissing,
    dump_line,
    final_rows,
    group_numbers,
    read_rows,
    step_credit,
    step_metrics,
)


def extra(spans: Any = ((0, 2), (3, 5)), scores: str | None = "[0.9, 0.2]", **info: Any) -> dict[str, Any]:
    """What an agent loop and a reward function leave with a sample."""
    given = {"skipped": 0.0, **({} if scores is None else {"step_scores": scores}), **info}
    return {"step_spans": [list(span) for span in spans], "reward_extra_info": given}


def test_rows_become_tensors() -> None:
    rows = read_rows(["q_0_0", "q_1_0", "pad_0_0"], [extra(), extra(((1, 4),), "[1.0]"), extra()], [False, False, True])
    credit = step_credit(rows, 6)
    assert credit.step_RT.tolist() == [[0, 0, -1, 1, 1, -1], [-1, 0, 0, 0, -1, -1], [-1] * 6]
    assert credit.scores_RS.tolist() == [[0.9, 0.2], [1.0, 0.0], [0.0, 0.0]]
    assert credit.n_steps_R.tolist() == [2, 1, 0]
    assert credit.counts_R.tolist() == [True, True, False]


def test_skipped_rows_do_not_count_whatever_they_hold() -> None:
    rows = read_rows(["q_0_0", "q_1_0"], [extra(skipped=1.0, scores="[]"), extra(scores="")], [False, False])
    assert [sample.counts for sample in rows.samples] == [False, True]
    assert rows.samples[1].scores is None


def test_the_last_row_of_a_session_speaks() -> None:
    assert final_rows(["q_0_0", "q_0_2", "q_0_1", "a_b_1_0"]) == (1, 1, 1, 3)
    rows = read_rows(["q_0_0", "q_0_1"], [extra(), extra(((0, 1),), "[0.5]")], [False, False])
    assert rows.samples[0].spans == ()
    assert rows.samples[1].scores == (0.5,)
    assert rows.finals == (1, 1)


@pytest.mark.parametrize(
    ("sample", "needs", "said"),
    [
        ({"reward_extra_info": {"step_scores": "[]"}}, Needs.SPANS, "default_agent_loop=verl_sql_steps"),
        (extra(scores=None), Needs.SPANS, "returns no step_scores"),
        (extra(scores=""), Needs.SCORES, "set reward_kwargs.mode to prm"),
        (extra(scores="[0.5]"), Needs.SPANS, "q_0_0 has 2 steps in its tokens and 1 step scores"),
    ],
)
def test_what_is_missing_is_said(sample: dict[str, Any], needs: Needs, said: str) -> None:
    with pytest.raises(StepsMissing, match=said):
        read_rows(["q_0_0"], [sample], [False], needs)
    assert read_rows(["q_0_0"], [sample], [False], Needs.NOTHING).samples[0].spans == ()


def test_groups_are_numbered_in_their_order() -> None:
    assert group_numbers(["b", "a", "b", "c"]).tolist() == [0, 1, 0, 2]


def test_metrics() -> None:
    samples = [extra(), extra((), "[]"), extra(((0, 3),), "[0.5]"), extra()]
    rows = read_rows(["q_0_0", "q_1_0", "q_2_0", "pad_0_0"], samples, [False, False, False, True])
    lines = [[0.9, 0.9, 1, 0.2, 0.2, 1], [-1.0, -1.0], [-0.5, -0.5, -0.5], [0.0]]
    assert step_metrics(rows, lines) == {
        "steps/with_spans": pytest.approx(2 / 3),
        "steps/segments/mean": pytest.approx((3 + 1 + 1) / 3),
        "steps/score/mean": pytest.approx((0.9 + 0.2 + 0.5) / 3),
        "steps/score/position_1": pytest.approx(0.7),
        "steps/score/position_2": pytest.approx(0.2),
        "steps/advantage_positive/position_1": 0.5,
        "steps/advantage_negative/position_1": 0.5,
        "steps/advantage_positive/position_2": 1.0,
        "steps/advantage_negative/position_2": 0.0,
    }


def test_a_dumped_line_reads_back() -> None:
    sample = read_rows(["q_0_0"], [extra()], [False]).samples[0]
    record = json.loads(dump_line("q_0_0", sample, [5, 6], [1, 1], [0.5, -0.5], "Größe"))
    assert (record["spans"], record["scores"], record["text"]) == ([[0, 2], [3, 5]], [0.9, 0.2], "Größe")
    assert (record["ids"], record["mask"], record["advantages"]) == ([5, 6], [1, 1], [0.5, -0.5])
