"""Recipes as a user starts them, in the environment that the tests run in."""

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
VENV = Path(sys.prefix)
RunRecipe = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def run_recipe() -> RunRecipe:
    """`run_recipe(name, out, *overrides, timeout=120, **variables)`, on the CPU profile unless PROFILE says otherwise.

    The cache of stages is that beside `out` unless CACHE names another. Skipped where the recipe's set-up would have to
    install something.
    """
    if find_spec("verl") is None or not (VENV / "verl_sql.ready").is_file():
        pytest.skip("not in an environment that recipes/setup.sh made")

    def run(
        name: str, out: Path, *overrides: str, timeout: float = 120, **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        own = {"VENV": str(VENV), "PROFILE": "cpu", "OUT": str(out), "CACHE": str(out.parent / "cache")}
        return subprocess.run(
            ["bash", str(ROOT / "recipes" / f"{name}.sh"), *overrides],
            env={**os.environ, **own, **variables}, capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip

    return run
