"""Every recipe's configuration composes on verl's own: for GPUs with the paper's numbers, on a CPU, and as PPO."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

ROOT = Path(__file__).parents[2]
RECIPES = sorted(path.stem for path in (ROOT / "recipes" / "conf" / "recipe").glob("*.yaml"))
# The papers' numbers, by the key of verl that they stand at. A batch counts prompts.
PAPERS: dict[str, dict[str, Any]] = {
    "reward_sql_grpo": {
        "data.train_batch_size": 48,
        "actor_rollout_ref.rollout.n": 8,
        "actor_rollout_ref.actor.optim.lr": 1e-6,
        "actor_rollout_ref.actor.clip_ratio": 0.2,
        "actor_rollout_ref.actor.kl_loss_coef": 0.001,
        "actor_rollout_ref.actor.kl_loss_type": "low_var_kl",
        "trainer.total_epochs": 2,
    },
    "reasoning_sql_grpo": {
        "algorithm.norm_adv_by_std_in_grpo": False,
        "data.train_batch_size": 32,
        "actor_rollout_ref.rollout.n": 6,
        "actor_rollout_ref.actor.optim.lr": 1e-6,
        "actor_rollout_ref.actor.optim.lr_scheduler_type": "constant",
        "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio": 0.001,
        "trainer.total_epochs": 3,
        "reward.custom_reward_function.name": "compute_score_async",
    },
    "think2sql_grpo": {
        "data.train_batch_size": 256 // 16,  # 256 completions a step
        "data.max_response_length": 4096,
        "actor_rollout_ref.rollout.n": 16,
        "actor_rollout_ref.rollout.temperature": 0.7,
        "actor_rollout_ref.rollout.top_p": 0.95,
        "actor_rollout_ref.actor.optim.lr": 1e-6,
        "trainer.total_epochs": 1,
        "reward.custom_reward_function.reward_kwargs.r_sql": "qatch",
    },
    "tabular_reasoning_grpo": {
        "actor_rollout_ref.rollout.n": 8,
        "actor_rollout_ref.actor.optim.lr": 1e-6,
        "reward.custom_reward_function.name": "compute_score_async",
    },
}


@pytest.fixture(scope="module")
def verl_config() -> Iterator[None]:
    """verl's configuration folder as hydra's, found without importing verl."""
    spec = find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("verl is not installed")
    with initialize_config_dir(str(Path(spec.submodule_search_locations[0]) / "trainer" / "config"), version_base=None):
        yield


def composed(*overrides: str) -> DictConfig:
    """verl's PPO configuration with ours on top, resolved."""
    search = f"hydra.searchpath=[file://{ROOT}/verl_sql/integration/conf,file://{ROOT}/recipes/conf]"
    config = compose("ppo_trainer", [search, *overrides])
    OmegaConf.resolve(config)
    return config


def test_there_are_recipes() -> None:
    assert set(RECIPES) >= set(PAPERS)
    scripts = {path.stem for path in (ROOT / "recipes").glob("*.sh")}
    assert set(RECIPES) <= scripts


@pytest.mark.usefixtures("verl_config")
@pytest.mark.parametrize("name", RECIPES)
def test_gpu_form(name: str) -> None:
    config = composed(f"+recipe={name}")
    assert config.trainer.n_gpus_per_node == 8
    assert config.trainer.v1.trainer_mode == "verl_sql_sync"
    assert config.reward.custom_reward_function.path.startswith("pkg://verl_sql.reward_fns.")
    assert config.data.filter_overlong_prompts is False
    assert config.trainer.experiment_name == name
    completions = config.data.train_batch_size * config.actor_rollout_ref.rollout.n
    assert completions % config.trainer.n_gpus_per_node == 0
    assert config.actor_rollout_ref.actor.ppo_mini_batch_size == config.data.train_batch_size
    for key, value in PAPERS.get(name, {}).items():
        assert OmegaConf.select(config, key) == value, key


@pytest.mark.usefixtures("verl_config")
@pytest.mark.parametrize("name", RECIPES)
def test_cpu_form(name: str) -> None:
    config = composed(f"+recipe={name}", "+preset=cpu", f"+small={name}", "trainer.total_training_steps=2")
    assert config.trainer.device == "cpu"
    assert config.trainer.total_training_steps == 2
    assert config.actor_rollout_ref.rollout.dtype == "float32"
    assert config.data.train_batch_size <= 16
    assert config.reward.custom_reward_function.path.startswith("pkg://verl_sql.reward_fns.")


@pytest.mark.usefixtures("verl_config")
@pytest.mark.parametrize("name", sorted(PAPERS))
def test_ppo_forms(name: str) -> None:
    gpu = composed(f"+recipe={name}", "+ppo=critic", "actor_rollout_ref.model.path=/a/policy")
    assert gpu.algorithm.adv_estimator == "gae"
    assert gpu.critic.model.path == "/a/policy"
    assert gpu.critic.strategy == "fsdp2"
    cpu = composed(f"+recipe={name}", "+preset=cpu", f"+small={name}", "+ppo=critic_cpu")
    assert cpu.critic.fsdp.mixed_precision.param_dtype == "fp32"
    assert cpu.critic.model.use_remove_padding is False
    assert cpu.critic.model.override_config.attn_implementation == "sdpa"
    assert cpu.critic.ppo_mini_batch_size == cpu.data.train_batch_size


@pytest.mark.usefixtures("verl_config")
def test_a_judge_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JUDGE_BASE_URL", raising=False)
    monkeypatch.delenv("JUDGE_MODEL", raising=False)
    judge = "reward.custom_reward_function.reward_kwargs.judge"
    assert OmegaConf.select(composed("+recipe=reasoning_sql_grpo"), judge) == {"base_url": None, "model": None}
    monkeypatch.setenv("JUDGE_BASE_URL", "http://localhost:8000/v1")
    monkeypatch.setenv("JUDGE_MODEL", "judge")
    named = {"base_url": "http://localhost:8000/v1", "model": "judge"}
    for name in ("reasoning_sql_grpo", "tabular_reasoning_grpo"):
        assert OmegaConf.select(composed(f"+recipe={name}"), judge) == named
