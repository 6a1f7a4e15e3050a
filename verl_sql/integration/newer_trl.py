"""TRL beside verl: verl 0.9.1 takes any TRL for one that has models with a value head, which TRL 1.16 has not.

`apply_monkey_patch`, which every actor calls, then fails with an ImportError, so that installing the extra `dpo` would
end all GRPO in that environment. Here verl is told that there is no TRL unless what it wants of it is there.
"""

import importlib
from types import ModuleType

ASKING = ("verl.models.transformers.monkey_patch", "verl.utils.model")
"""verl's modules that have the question `is_trl_available` and import the class on a yes."""
WANTED = "AutoModelForCausalLMWithValueHead"


def install(module: ModuleType) -> None:
    """Replace the question in one of these modules."""
    module.is_trl_available = has_value_heads  # type: ignore[attr-defined]


def has_value_heads() -> bool:
    """Whether TRL is installed and one of the two places where verl looks for the class holds it."""
    return any(_holds(name) for name in ("trl.experimental.ppo", "trl"))


def _holds(name: str) -> bool:
    try:
        return hasattr(importlib.import_module(name), WANTED)
    except ImportError:
        return False
