"""Fixtures that every room's tests may use."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of real data and recorded verdicts that VERL_SQL_SHARED names; the test is skipped without it."""
    value = os.environ.get("VERL_SQL_SHARED")
    if not value or not Path(value).is_dir():
        pytest.skip("VERL_SQL_SHARED does not name a folder")
    return Path(value)
