"""The executor inside a Ray actor, where verl's reward loop calls it: it answers, and its workers end with it."""

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ray = pytest.importorskip("ray")


@pytest.fixture
def cluster() -> Iterator[None]:
    """A Ray of one CPU."""
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """One table with three rows."""
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE item (id INTEGER)")
        connection.executemany("INSERT INTO item VALUES (?)", [(1,), (2,), (3,)])
    return path


def scorer() -> Any:
    """The actor class; local, so that Ray ships it by value: its workers cannot import a test module."""

    class Scorer:
        """What verl's reward loop worker does: many threads of an actor that score at once."""

        def score(self, database: str, predictions: list[str]) -> dict[str, Any]:
            from concurrent.futures import ThreadPoolExecutor

            from verl_sql.database.executor import shared_executor

            executor = shared_executor(workers=1)
            gold = "SELECT id FROM item"

            def bird_set(prediction: str) -> float | None:
                return executor.compare(Path(database), gold, prediction).values["bird_set"]

            with ThreadPoolExecutor(8) as pool:
                values = list(pool.map(bird_set, predictions))
            pids = executor.worker_pids()
            executor.close()
            return {"values": values, "pids": pids}

    return ray.remote(Scorer)


def test_scores_and_leaves_nothing(cluster: None, database: Path) -> None:
    actor = scorer().remote()
    predictions = ["SELECT id FROM item ORDER BY id DESC", "SELECT 1", "DROP TABLE item"] * 20
    result = ray.get(actor.score.remote(str(database), predictions), timeout=120)
    assert result["values"] == [1.0, 0.0, 0.0] * 20
    assert result["pids"]
    for pid in result["pids"]:
        assert not os.path.exists(f"/proc/{pid}/exe") or "python" not in os.readlink(f"/proc/{pid}/exe")
