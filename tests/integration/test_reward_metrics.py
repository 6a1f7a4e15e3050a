"""Reward components become training metrics."""

import pytest

from verl_sql.integration.reward_metrics import reward_metrics


def test_means_over_the_samples_that_have_a_key() -> None:
    infos = [{"acc": 1.0, "n_steps": 2, "pred": "SELECT 1"}, {"acc": 0.0, "pred": ""}, {"acc": True}]
    assert reward_metrics(infos) == {"reward/acc/mean": pytest.approx(2 / 3), "reward/n_steps/mean": 2.0}


def test_outcome_shares_have_a_place_of_their_own() -> None:
    infos = [{"outcome_match": 1.0, "outcome": "match"}, {"outcome_match": 0.0, "outcome_reward": 1.0}]
    assert reward_metrics(infos) == {"outcome/match": 0.5, "reward/outcome_reward/mean": 1.0}


@pytest.mark.parametrize("infos", [[], [{}], [{"pred": "x", "step_scores": [0.5]}]])
def test_nothing_numeric_gives_nothing(infos: list[dict[str, object]]) -> None:
    assert reward_metrics(infos) == {}
