"""Fixtures that every room's tests may use."""

import os
import sqlite3
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder of real data and recorded verdicts that VERL_SQL_SHARED names; the test is skipped without it."""
    value = os.environ.get("VERL_SQL_SHARED")
    if not value or not Path(value).is_dir():
        pytest.skip("VERL_SQL_SHARED does not name a folder")
    return Path(value)


@pytest.fixture(scope="session")
def league_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database root that holds `league`, built from tests/data/league.sql."""
    root = tmp_path_factory.mktemp("league_root")
    (root / "league").mkdir()
    connection = sqlite3.connect(root / "league" / "league.sqlite")
    connection.executescript((Path(__file__).parent / "data" / "league.sql").read_text(encoding="utf-8"))
    connection.close()
    return root


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests marked `long` out unless the marker expression names them."""
    if "long" in (config.getoption("markexpr") or ""):
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
