"""Every recipe's configuration composes on verl's own, as it stands for GPUs and with the CPU default on top."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

ROOT = Path(__file__).parents[2]
RECIPES = sorted(path.stem for path in (ROOT / "recipes" / "conf" / "recipe").glob("*.yaml"))


@pytest.fixture(scope="module")
def verl_config() -> str:
    """The folder of verl's configuration, found without importing verl."""
    spec = find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("verl is not installed")
    return str(Path(spec.submodule_search_locations[0]) / "trainer" / "config")


def composed(verl_config: str, *overrides: str) -> DictConfig:
    """verl's PPO configuration with ours on top, resolved."""
    search = f"hydra.searchpath=[file://{ROOT}/verl_sql/integration/conf,file://{ROOT}/recipes/conf]"
    with initialize_config_dir(verl_config, version_base=None):
        config = compose("ppo_trainer", [search, *overrides])
    OmegaConf.resolve(config)
    return config


def test_there_are_recipes() -> None:
    assert "reward_sql_grpo" in RECIPES


@pytest.mark.parametrize("name", RECIPES)
def test_gpu_form(name: str, verl_config: str) -> None:
    config = composed(verl_config, f"+recipe={name}")
    assert config.trainer.n_gpus_per_node == 8
    assert config.trainer.v1.trainer_mode == "verl_sql_sync"
    assert config.reward.custom_reward_function.path.startswith("pkg://verl_sql.reward_fns.")
    assert config.data.filter_overlong_prompts is False


@pytest.mark.parametrize("name", RECIPES)
def test_cpu_form(name: str, verl_config: str) -> None:
    config = composed(verl_config, f"+recipe={name}", "+preset=cpu", f"+small={name}", "trainer.total_training_steps=2")
    assert config.trainer.device == "cpu"
    assert config.trainer.total_training_steps == 2
    assert config.actor_rollout_ref.rollout.dtype == "float32"


def test_reward_sql_has_the_papers_hyper_parameters(verl_config: str) -> None:
    config = composed(verl_config, "+recipe=reward_sql_grpo")
    actor = config.actor_rollout_ref.actor
    assert (config.data.train_batch_size, config.actor_rollout_ref.rollout.n, config.trainer.total_epochs) == (48, 8, 2)
    assert (actor.optim.lr, actor.clip_ratio) == (1e-6, 0.2)
    assert (actor.kl_loss_coef, actor.kl_loss_type) == (0.001, "low_var_kl")
