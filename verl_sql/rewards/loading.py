"""Find a reward function by its paper's name, a file or `pkg://module`, as verl would."""

import importlib
import importlib.util
from pathlib import Path
from types import ModuleType


class RewardNotFound(LookupError):
    """No such reward function; the message says what was looked for."""


def load_reward(name: str) -> ModuleType:
    """The module of a reward function.

    Args:
        name: a file of `reward_fns/` without its suffix, a path to a `.py` file, or `pkg://module`.

    Raises:
        RewardNotFound: there is none, or it has no `compute_score`.
    """
    module = _from_file(Path(name)) if name.endswith(".py") else _from_package(name)
    if not callable(getattr(module, "compute_score", None)):
        raise RewardNotFound(f"{name} has no compute_score")
    return module


def _from_package(name: str) -> ModuleType:
    """Import by module name."""
    target = name.removeprefix("pkg://") if name.startswith("pkg://") else f"verl_sql.reward_fns.{name}"
    try:
        return importlib.import_module(target)
    except ModuleNotFoundError as error:
        raise RewardNotFound(f"no reward function {name!r}: {error}") from error


def _from_file(path: Path) -> ModuleType:
    """Import by path."""
    spec = importlib.util.spec_from_file_location(f"reward_fn_{path.stem}", path) if path.is_file() else None
    if spec is None or spec.loader is None:
        raise RewardNotFound(f"no reward function at {path}")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
