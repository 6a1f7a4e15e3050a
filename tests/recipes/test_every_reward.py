"""Two steps of the real trainer with each reward function: its terms are in the training metrics and make up the score.

Each case is a recipe of its own, or one that lends its policy. A policy of 150 steps of cold start writes the paper's
format and some SQL that runs; cold starts are shared through a cache (VERL_SQL_TEST_CACHE names one that is there).
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

import pytest

pytestmark = [pytest.mark.long, pytest.mark.trainer]

SAMPLE = "sizes.cold_start=2000 sizes.train=64 sizes.dev=4 sizes.test=24 sizes.unseen=8"
FUNCTION = "reward.custom_reward_function"
LENT = (f"{FUNCTION}.name=compute_score", f"~{FUNCTION}.reward_kwargs.r_sql")


@dataclass(frozen=True)
class Case:
    """One run: the reward function, the recipe, overrides and variables, and metrics that only this run has."""

    reward: str
    recipe: str
    overrides: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()


CASES = {
    "reward_sql": Case("reward_sql", "reward_sql_grpo", variables={"MODE": "rule_or", "N": "0"}),
    "reasoning_sql": Case("reasoning_sql", "reasoning_sql_grpo"),
    "think2sql": Case("think2sql", "think2sql_grpo"),
    "tabular_reasoning": Case("tabular_reasoning", "tabular_reasoning_grpo"),
    **{name: Case(name, "think2sql_grpo", LENT) for name in ("retoolsql", "progress_sql", "execution")},
    "ppo": Case(
        "reasoning_sql",
        "reasoning_sql_grpo",
        variables={"ADVANTAGE": "gae"},
        metrics=("critic/vf_loss", "critic/vpred_mean", "critic/values/mean"),
    ),
    "dapo": Case("reasoning_sql", "reasoning_sql_grpo", ("reward.reward_manager.name=dapo",)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all runs and their cache are."""
    return tmp_path_factory.mktemp("every_reward")


@pytest.mark.parametrize("name", CASES)
def test_terms_are_in_the_training_metrics(name: str, folder: Path, run_recipe) -> None:
    case, out = CASES[name], folder / name
    cache = os.environ.get("VERL_SQL_TEST_CACHE") or str(folder / "cache")
    path = f"{FUNCTION}.path=pkg://verl_sql.reward_fns.{case.reward}"
    done = run_recipe(
        case.recipe, out, "trainer.total_training_steps=2", path, *case.overrides, timeout=900,
        SAMPLE=SAMPLE, COLD_START_STEPS="150", CACHE=cache, **case.variables,
    )  # fmt: skip
    log = out / "console.log"
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}\n{log.read_text()[-3000:]}"
    lines = [json.loads(line)["data"] for line in (out / "metrics.jsonl").read_text().splitlines()]
    trained = [line for line in lines if "critic/score/mean" in line]
    assert len(trained) == 2
    for metrics in trained:
        check_step(metrics, case)
    assert max(metrics["reward/executed/mean"] for metrics in trained) > 0


def check_step(metrics: Mapping[str, float], case: Case) -> None:
    """A step's terms times their weights are its score; the outcomes' shares are a whole."""
    terms = import_module(f"verl_sql.reward_fns.{case.reward}").REWARD.terms
    weighted = math.fsum(term.weight * metrics[f"reward/{name}/mean"] for name, term in terms.items())
    assert weighted == pytest.approx(metrics["critic/score/mean"], abs=1e-4)
    assert 0 <= metrics["reward/acc/mean"] <= 1
    assert sum(value for key, value in metrics.items() if key.startswith("outcome/")) == pytest.approx(1.0)
    assert all(math.isfinite(metrics[key]) for key in ("actor/pg_loss", "actor/grad_norm", *case.metrics))
