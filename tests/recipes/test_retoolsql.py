"""ReToolSQL's recipes: the paper's numbers in the configuration, wrong inputs refused, and (long) a whole small run."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from verl_sql.dataset.parquet import read_rows
from verl_sql.dataset.sample import SampleSizes, write_sample

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


STAND_IN = """
PY=PYTHON
set_up() { export PROFILE=gpu; }
launched() {
  printf '%s\\n' "$@" >"$OUT/arguments"
  mkdir -p "$OUT/grpo/global_step_1/actor/huggingface"
  echo 1 >"$OUT/grpo/latest_checkpointed_iteration.txt"
}
show_run() { echo "shown: $1"; }
tool_table() { echo "table: $*"; }
main "$@"; exit
"""


@pytest.mark.long
@pytest.mark.parametrize("name", ["retoolsql_rft", "retoolsql_infer"])
def test_with_gpus_up_to_the_trainer(name: str, tmp_path: Path) -> None:
    """BIRD's prompts for the tools' agent loop, and arguments that compose; the trainer itself only notes them."""
    pytest.importorskip("torch")
    from verl_sql.integration.tiny_policy import TinyPolicyShape, build_tiny_policy

    write_sample(tmp_path / "bird", 0, SampleSizes(cold_start=4, train=4, dev=4, test=4, unseen=4))
    shape = TinyPolicyShape(vocab_size=300, hidden_size=64, layers=1)
    build_tiny_policy(["SELECT name FROM team"] * 50, tmp_path / "policy", shape)
    text = (ROOT / "recipes" / f"{name}.sh").read_text(encoding="utf-8")
    own = text.replace('$(dirname "${BASH_SOURCE[0]}")', str(ROOT / "recipes")).replace('main "$@"; exit\n', "")
    (tmp_path / "run.sh").write_text(own + STAND_IN.replace("PYTHON", sys.executable))
    variables = {"BIRD_DIR": "bird", "MODEL": "policy", "OUT": "out", "CACHE": "cache"}
    env = {**os.environ, **{key: str(tmp_path / value) for key, value in variables.items()}}
    done = subprocess.run(["bash", str(tmp_path / "run.sh")], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("table: ")
    row = next(read_rows(tmp_path / "out" / "data" / "train.parquet"))
    assert row["agent_name"] == "verl_sql_tools"
    assert "you may call tools" in row["prompt"][0]["content"]
    told = (tmp_path / "out" / "arguments").read_text().splitlines()
    config = composed("ppo_trainer", *told[told.index("verl.trainer.main_ppo") + 2 :])
    tools = Path(config.actor_rollout_ref.rollout.multi_turn.tool_config_path)
    assert tools.is_file()
    assert config.actor_rollout_ref.rollout.val_kwargs.n == (16 if name == "retoolsql_infer" else 1)
