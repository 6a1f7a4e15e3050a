"""The GPU form of a recipe up to the trainer's command line: BIRD in the paper's prompt, arguments that compose.

The trainer itself is replaced by a function that notes its arguments; everything before it is real.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from verl_sql.dataset.parquet import read_rows
from verl_sql.dataset.sample import SampleSizes, write_sample

ROOT = Path(__file__).parents[2]
REPLACED = """
PY=PYTHON
set_up() { export PROFILE=gpu; }
launched() {
  printf '%s\\n' "$@" >"$OUT/arguments"
  mkdir -p "$OUT/grpo/global_step_1/actor/huggingface"
  echo 1 >"$OUT/grpo/latest_checkpointed_iteration.txt"
}
show_run() { echo "shown: $1"; }
main "$@"; exit
"""


@pytest.fixture(scope="module")
def bird(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few questions in BIRD's layout."""
    folder = tmp_path_factory.mktemp("bird")
    write_sample(folder, 0, SampleSizes(cold_start=8, train=8, dev=4, test=4, unseen=4))
    return folder


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that is a model for the tokenizer's sake."""
    pytest.importorskip("torch")
    from verl_sql.integration.tiny_policy import TinyPolicyShape, build_tiny_policy

    folder = tmp_path_factory.mktemp("policy")
    build_tiny_policy(["SELECT name FROM team"] * 50, folder, TinyPolicyShape(vocab_size=300, hidden_size=64, layers=1))
    return folder


def arguments(recipe: str, out: Path, *overrides: str, **variables: str) -> list[str]:
    """What the recipe would start verl's trainer with."""
    text = (ROOT / "recipes" / f"{recipe}.sh").read_text(encoding="utf-8")
    assert text.splitlines()[-1] == 'main "$@"; exit'
    script = out.with_suffix(".sh")
    own = text.replace('$(dirname "${BASH_SOURCE[0]}")', str(ROOT / "recipes")).replace('main "$@"; exit\n', "")
    script.write_text(own + REPLACED.replace("PYTHON", sys.executable))
    env = {**os.environ, "OUT": str(out), "CACHE": str(out.parent / "cache"), **variables}
    done = subprocess.run(
        ["bash", str(script), *overrides], env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "shown: grpo"
    return (out / "arguments").read_text().splitlines()


CASES = [
    ("reasoning_sql_grpo", "<reasoning>", "gae"),
    pytest.param("think2sql_grpo", "<think>", "grpo", marks=pytest.mark.long),
    pytest.param("tabular_reasoning_grpo", "<sql>", "grpo", marks=pytest.mark.long),
]


@pytest.mark.parametrize(("recipe", "tag", "advantage"), CASES)
def test_arguments_compose(recipe: str, tag: str, advantage: str, bird: Path, policy: Path, tmp_path: Path) -> None:
    spec = find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("verl is not installed")
    out, seen = tmp_path / "out", {"BIRD_DIR": str(bird), "MODEL": str(policy), "ADVANTAGE": advantage}
    told = arguments(recipe, out, "trainer.total_epochs=7", **seen)
    prompts = [row["prompt"][0]["content"] for row in read_rows(out / "data" / "train.parquet")]
    assert len(prompts) == 8
    assert all(tag in prompt for prompt in prompts)
    overrides = told[told.index("verl.trainer.main_ppo") + 1 :]
    with initialize_config_dir(str(Path(spec.submodule_search_locations[0]) / "trainer" / "config"), version_base=None):
        config = compose("ppo_trainer", overrides)
    OmegaConf.resolve(config)
    assert config.data.train_files == str(out / "data" / "train.parquet")
    assert config.actor_rollout_ref.model.path == str(policy)
    assert config.trainer.total_epochs == 7
    assert config.algorithm.adv_estimator == advantage
    assert config.reward.custom_reward_function.reward_kwargs.db_root == str(bird)
