"""The ways to a process reward model compose on the recipe, on a GPU and on a CPU, and pass the trainer's checks."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, MissingMandatoryValue, OmegaConf

ROOT = Path(__file__).parents[2]
MODEL = "reward.reward_model.model_path=/a/model"
CPU = ("+preset=cpu", "+small=reward_sql_grpo", "+prm=served_cpu", MODEL)
PRM = "reward.custom_reward_function.reward_kwargs.prm"


@pytest.fixture(autouse=True)
def _verl_config() -> Iterator[None]:
    """Compose in verl's own configuration folder, found without importing verl."""
    spec = find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("verl is not installed")
    with initialize_config_dir(str(Path(spec.submodule_search_locations[0]) / "trainer" / "config"), version_base=None):
        yield


def composed(*overrides: str) -> DictConfig:
    search = f"hydra.searchpath=[file://{ROOT}/verl_sql/integration/conf,file://{ROOT}/recipes/conf]"
    return compose("ppo_trainer", [search, "+recipe=reward_sql_grpo", *overrides])


@pytest.mark.parametrize("overrides", [("+prm=served", MODEL), CPU])
def test_served_by_verl(overrides: tuple[str, ...]) -> None:
    config = composed(*overrides)
    model = config.reward.reward_model
    assert (model.enable, model.enable_resource_pool, model.model_path) == (True, True, "/a/model")
    assert model.rollout.max_num_batched_tokens >= model.rollout.max_model_len, "texts are read at once"
    assert not model.rollout.enable_chunked_prefill
    assert model.rollout.engine_kwargs.vllm.runner == "pooling"
    assert config.reward.custom_reward_function.name == "compute_score_async"
    assert config.reward.custom_reward_function.reward_kwargs.mode == "prm+rule_or"


def test_without_a_gpu_ray_is_told_of_one_more() -> None:
    config = composed(*CPU)
    pools = config.trainer.n_gpus_per_node + config.reward.reward_model.n_gpus_per_node
    assert config.ray_kwargs.ray_init.num_gpus == pools
    assert config.reward.reward_model.rollout.dtype == "float32"


@pytest.mark.parametrize("overrides", [("+prm=served", MODEL), CPU])
@pytest.mark.parametrize("estimator", ["cocte_step_grpo", "deepseekmath_process", "verl_sql_grpo"])
def test_the_trainer_takes_what_the_recipe_gives(overrides: tuple[str, ...], estimator: str) -> None:
    from verl_sql.integration.estimators import check_config

    config = composed(*overrides, f"algorithm.adv_estimator={estimator}")
    check_config(config)
    assert config.actor_rollout_ref.rollout.agent.default_agent_loop == "verl_sql_steps"
    assert config.algorithm.step_mean is True


def test_an_endpoint_must_be_named() -> None:
    with pytest.raises(MissingMandatoryValue):
        OmegaConf.to_container(composed("+prm=endpoint"), resolve=True, throw_on_missing=True)
    config = composed("+prm=endpoint", f"{PRM}.base_url=http://host:8000", f"{PRM}.tokenizer=/a/model")
    assert OmegaConf.select(config, PRM) == {"base_url": "http://host:8000", "tokenizer": "/a/model"}
    assert not config.reward.reward_model.enable
