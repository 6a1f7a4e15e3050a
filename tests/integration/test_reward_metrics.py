"""Reward components become training metrics."""

import pytest

from verl_sql.integration.reward_metrics import group_metrics, reward_metrics


def test_means_over_the_samples_that_have_a_key() -> None:
    infos = [{"acc": 1.0, "n_steps": 2, "pred": "SELECT 1"}, {"acc": 0.0, "pred": ""}, {"acc": True}]
    assert reward_metrics(infos) == {"reward/acc/mean": pytest.approx(2 / 3), "reward/n_steps/mean": 2.0}


def test_outcome_shares_have_a_place_of_their_own() -> None:
    infos = [{"outcome_match": 1.0, "outcome": "match"}, {"outcome_match": 0.0, "outcome_reward": 1.0}]
    assert reward_metrics(infos) == {"outcome/match": 0.5, "reward/outcome_reward/mean": 1.0}


@pytest.mark.parametrize("infos", [[], [{}], [{"pred": "x", "step_scores": [0.5]}]])
def test_nothing_numeric_gives_nothing(infos: list[dict[str, object]]) -> None:
    assert reward_metrics(infos) == {}


def test_groups_that_teach_nothing() -> None:
    scores = {"a": [1, 1], "b": [0, 0], "c": [0, 1], "d": [0.2, 0]}
    keys = [f"{uid}_{n}_0" for uid in scores for n in range(2)]
    infos = [{"score": score, "acc": float(score == 1)} for pair in scores.values() for score in pair]
    assert group_metrics(keys, infos) == {
        "groups/no_variance": 0.5, "groups/all_right": 0.25, "groups/none_right": 0.5,
    }  # fmt: skip
    assert group_metrics(["a_0_0"], [{}]) == {}
