"""What verl loads in each of its processes (entry point group `verl.plugins`).

verl 0.9.1 imports this module while it is itself being imported, and hides its errors at debug level; the launcher
and `verl-sql doctor` therefore import it on their own and ask `visible_registrations`. What needs verl's heavier
modules is registered when those are imported, so that a process that does not use them does not pay for them.
"""

import importlib
from types import ModuleType

import wrapt

from verl_sql.integration import cpu_platform, newer_trl

_REGISTRARS = {
    "verl.trainer.ppo.v1.trainer_sync": "verl_sql.integration.trainer",
    "verl.trainer.ppo.core_algos": "verl_sql.integration.estimators",
    "verl.experimental.agent_loop.single_turn_agent_loop": "verl_sql.integration.step_agent_loop",
    "verl.experimental.agent_loop.agent_loop": "verl_sql.integration.refinement_loop",
}
"""A module of verl's, and the module of ours that registers something with it when it is imported."""

_LOSSES = "verl.workers.utils.losses"


def _register_with(module: ModuleType) -> None:
    importlib.import_module(_REGISTRARS[module.__name__])


def _inform_losses(module: ModuleType) -> None:
    from verl_sql.integration import actor_loss

    actor_loss.install(module)


if cpu_platform.is_requested():
    cpu_platform.install()
for name in _REGISTRARS:
    wrapt.register_post_import_hook(_register_with, name)
wrapt.register_post_import_hook(_inform_losses, _LOSSES)
for name in newer_trl.ASKING:
    wrapt.register_post_import_hook(newer_trl.install, name)


def register() -> None:
    """Nothing is left to do: loading this module registers. It is the attribute that the entry point names."""


def visible_registrations() -> dict[str, bool]:
    """What this plugin registers, by name, and whether verl's registries of this process hold it."""
    from verl.experimental.agent_loop.agent_loop import _agent_loop_registry
    from verl.plugin.platform import PlatformRegistry
    from verl.trainer.ppo import core_algos
    from verl.trainer.ppo.v1 import trainer_base, trainer_sync  # noqa: F401 - as the trainer's process imports them
    from verl.workers.utils import losses

    seen = {
        "trainer verl_sql_sync": "verl_sql_sync" in trainer_base.TRAINER_REGISTRY,
        "estimator cocte_step_grpo": "cocte_step_grpo" in core_algos.ADV_ESTIMATOR_REGISTRY,
        "agent loop verl_sql_steps": "verl_sql_steps" in _agent_loop_registry,
        "loss of the actor": losses.ppo_loss.__module__ == losses.__name__ and hasattr(losses.ppo_loss, "__wrapped__"),
    }
    if cpu_platform.is_requested():
        seen["platform cpu"] = PlatformRegistry.get("cpu") is not None
    return seen
