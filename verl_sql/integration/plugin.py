"""What verl loads in each of its processes (entry point group `verl.plugins`).

verl 0.9.1 imports this module while it is itself being imported, and hides its errors at debug level; the launcher
and `verl-sql doctor` therefore import it on their own and ask `visible_registrations`. What needs verl's heavier
modules is registered when those are imported, so that a process that does not use them does not pay for them.
"""

from types import ModuleType

import wrapt

from verl_sql.integration import cpu_platform

_TRAINERS = "verl.trainer.ppo.v1.trainer_sync"


def _register_trainers(_module: ModuleType) -> None:
    from verl_sql.integration import trainer  # noqa: F401 - importing it registers


if cpu_platform.is_requested():
    cpu_platform.install()
wrapt.register_post_import_hook(_register_trainers, _TRAINERS)


def register() -> None:
    """Nothing is left to do: loading this module registers. It is the attribute that the entry point names."""


def visible_registrations() -> dict[str, bool]:
    """What this plugin registers, by name, and whether verl's registries of this process hold it."""
    from verl.plugin.platform import PlatformRegistry
    from verl.trainer.ppo.v1 import trainer_base, trainer_sync  # noqa: F401 - as the trainer's process imports them

    seen = {"trainer verl_sql_sync": "verl_sql_sync" in trainer_base.TRAINER_REGISTRY}
    if cpu_platform.is_requested():
        seen["platform cpu"] = PlatformRegistry.get("cpu") is not None
    return seen
