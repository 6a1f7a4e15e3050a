"""A finished run in small, and what the tests of best-of-N ask."""

import runpy
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def synthetic() -> dict[str, Any]:
    """The functions of synthetic_run.py, by name."""
    return runpy.run_path(str(Path(__file__).with_name("synthetic_run.py")))


@pytest.fixture
def run_dir(synthetic: dict[str, Any], tmp_path: Path) -> Path:
    """A complete run directory."""
    return synthetic["write_run"](tmp_path / "run")


@pytest.fixture(scope="session")
def judged() -> dict[str, Any]:
    """The names of judged.py."""
    return runpy.run_path(str(Path(__file__).with_name("judged.py")))
