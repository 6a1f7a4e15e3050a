"""A small dataset folder in BIRD's layout, one executor for all tests here, endpoints whose answers tests write."""

import json
import runpy
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from verl_sql.database.executor import Executor
from verl_sql.database.limits import Limits
from verl_sql.dataset import prepare_job

QUESTIONS = [
    {"question": "How many shops?", "SQL": "SELECT count(*) FROM shop"},
    {"question": "How  many SHOPS?", "SQL": "SELECT count(*) FROM shop ;"},
    {"question": "Which name?", "SQL": "SELECT name FROM shops"},
    {"question": "No such name?", "SQL": "SELECT name FROM shop WHERE name = 'zzz'"},
    {"question": "Largest name of none?", "SQL": "SELECT max(name) FROM shop WHERE name = 'zzz'"},
    {"question": "Cheapest?", "SQL": "SELECT name FROM shop ORDER BY price LIMIT 1"},
    {"question": "Dearest?", "SQL": "SELECT name FROM shop ORDER BY price DESC LIMIT 1"},
    {"question": "Any two?", "SQL": "SELECT name FROM shop LIMIT 2"},
    {"question": "All four?", "SQL": "SELECT name FROM shop LIMIT 4"},
    {"question": "Today?", "SQL": "SELECT date('now'), count(*) FROM shop"},
    {"question": "At random?", "SQL": "SELECT abs(random()) FROM shop"},
    {"question": "Elsewhere?", "SQL": "SELECT 1", "db_id": "gone"},
    {"question": "Chained?", "SQL": "SELECT name FROM shop WHERE price > 2", "cocte": "WITH a AS (SELECT 1) SELECT 1"},
    {"question": "A" * 2000, "SQL": "SELECT id FROM shop", "template": "long", "nested": {"a": [1, None]}},
]


@pytest.fixture(scope="session")
def executor() -> Iterator[Executor]:
    with Executor(1, timeout=20) as made:
        yield made


@pytest.fixture(scope="session")
def backwards() -> Iterator[Executor]:
    with Executor(1, timeout=20, limits=Limits(backwards=True)) as made:
        yield made


@pytest.fixture
def one_pool(executor: Executor, backwards: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    """All builds share two pools of workers, whose start is most of the time of a small build."""
    for pool in (executor, backwards):
        monkeypatch.setattr(pool, "close", lambda: None)
    monkeypatch.setattr(prepare_job, "Executor", lambda _, __, limits: backwards if limits.backwards else executor)


@pytest.fixture
def bird_root(tmp_path: Path) -> Path:
    root = tmp_path / "bird"
    folder = root / "train" / "train_databases" / "shop"
    folder.mkdir(parents=True)
    sqlite3.connect(folder / "shop.sqlite").executescript(
        "CREATE TABLE shop (id INTEGER PRIMARY KEY, name TEXT, price REAL);"
        "INSERT INTO shop VALUES (1, 'Alpha', 1), (2, 'Beta', 1), (3, 'Gamma', 3), (4, 'Delta', 4)"
    )
    defaults = {"db_id": "shop", "evidence": "none; really", "difficulty": "simple"}
    rows = [{"question_id": 100 + i} | defaults | row for i, row in enumerate(QUESTIONS)]
    (root / "train" / "train.json").write_text(json.dumps(rows), encoding="utf-8")
    (root / "dev").mkdir()
    (root / "dev" / "dev.json").write_text(json.dumps(rows[:9]), encoding="utf-8")
    return root


@pytest.fixture
def endpoint() -> Iterator[Any]:
    """The endpoint of tests/generation."""
    path = Path(__file__).parents[1] / "generation" / "conftest.py"
    running = runpy.run_path(str(path))["Endpoint"]()
    yield running
    running.close()


@pytest.fixture
def second_endpoint() -> Iterator[Any]:
    """Another one."""
    path = Path(__file__).parents[1] / "generation" / "conftest.py"
    running = runpy.run_path(str(path))["Endpoint"]()
    yield running
    running.close()
