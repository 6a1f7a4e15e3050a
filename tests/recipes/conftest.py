"""Recipes as a user starts them, in the environment that the tests run in."""

import os
import signal
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
        command = ["bash", str(ROOT / "recipes" / f"{name}.sh"), *overrides]
        return _ended(command, {**os.environ, **own, **variables}, timeout)

    return run


def _ended(command: list[str], env: dict[str, str], timeout: float) -> "subprocess.CompletedProcess[str]":
    """Run a command in a session of its own; when its time is up the whole session is ended, trainers included."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=env, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGTERM)  # the launcher ends what it started
            out, err = process.communicate()
            pytest.fail(f"not over after {timeout:g} s\n{out[-2000:]}\n{err[-2000:]}")
    return subprocess.CompletedProcess(command, process.returncode, out, err)
