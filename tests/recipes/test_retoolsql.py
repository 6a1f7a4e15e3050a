"""ReToolSQL's recipes: the paper's numbers in the configuration, wrong inputs refused, and (long) a whole small run."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

ROOT = Path(__file__).parents[2]
SMALL = (
    "lookup_sizes.cold_start=160 lookup_sizes.train=64 lookup_sizes.test=16 lookup_sizes.unseen=8 "
    "lookup_sizes.variants=2 lookup_sizes.test_variants=1"
)


def composed(name: str, *overrides: str) -> DictConfig:
    """One of verl's configurations with ours on top, resolved."""
    spec = find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("verl is not installed")
    folder = str(Path(spec.submodule_search_locations[0]) / "trainer" / "config")
    search = f"hydra.searchpath=[file://{ROOT}/verl_sql/integration/conf,file://{ROOT}/recipes/conf]"
    with initialize_config_dir(folder, version_base=None):
        config = compose(name, [search, *overrides])
    return config


def test_the_papers_numbers() -> None:
    config = composed("ppo_trainer", "+recipe=retoolsql_rft")
    OmegaConf.resolve(config)
    assert config.actor_rollout_ref.rollout.n == 16
    assert config.algorithm.kl_schedule == [[0, 0.005], [40, 0.001], [80, 0.0]]
    assert config.actor_rollout_ref.actor.use_kl_loss
    assert (config.algorithm.filter_groups.enable, config.algorithm.filter_groups.metric) == (True, "acc")
    assert config.reward.custom_reward_function.path == "pkg://verl_sql.reward_fns.retoolsql"
    turns = config.actor_rollout_ref.rollout.multi_turn
    assert (turns.enable, turns.format, turns.max_assistant_turns) == (True, "verl_sql_hermes", 8)


def test_the_warm_start_composes() -> None:
    config = composed("sft_trainer_engine", "+sft=retoolsql_sft", "data.train_files=x", "model.path=x")
    assert config.data.custom_cls.name == "ToolSFTDataset"
    assert config.optim.lr == 1e-5


@pytest.mark.parametrize("name", ["retoolsql_sft", "retoolsql_rft", "retoolsql_infer"])
def test_wrong_inputs_are_refused(name: str, tmp_path: Path, run_recipe: Any) -> None:
    done = run_recipe(name, tmp_path / "out", TRAIN_FILE="x")
    assert done.returncode == 2
    assert "TRAIN_FILE, VAL_FILE and DB_ROOT go together" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.long
def test_a_whole_small_run(tmp_path: Path, run_recipe: Any) -> None:
    variables = {"SAMPLE": SMALL, "COLD_START_STEPS": "12", "STALL_SECONDS": "400"}
    done = run_recipe("retoolsql_rft", tmp_path / "out", "trainer.total_training_steps=2", timeout=900, **variables)
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    arms = json.loads((tmp_path / "out" / "tool_table.json").read_text())
    assert {(arm["policy"], arm["tools"]) for arm in arms} == {
        (policy, tools) for policy in ("warm start", "after RL") for tools in (True, False)
    }
    lines = [json.loads(line) for line in (tmp_path / "out" / "metrics.jsonl").read_text().splitlines()]
    logged = set().union(*(line["data"] for line in lines))
    assert {"reward/tool_calls/mean", "reward/turns/mean", "reward/repaired/mean"} <= logged
