"""A finished run in small."""

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
