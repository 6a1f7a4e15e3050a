"""Comparisons are made once: from memory later, shared while under way; never across states of a file."""

import os
import signal
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from verl_sql.database import remembered
from verl_sql.database.executor import Executor, Pair
from verl_sql.database.faults import DatabaseNotFound

GOLD, PRED = "SELECT count(*) FROM t", "SELECT count(v) FROM t"
SLOW = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 400000) SELECT max(x) FROM c"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """One table of three rows."""
    path = tmp_path / "d.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript("CREATE TABLE t(v); INSERT INTO t VALUES (1), (2), (3);")
    connection.close()
    return path


def without_workers(executor: Executor) -> None:
    """Kill every worker and wait until the pool knows."""
    for pid in executor.worker_pids():
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while executor.worker_pids() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert executor.worker_pids() == []


def test_a_comparison_from_memory_needs_no_worker(database: Path) -> None:
    with Executor(workers=1) as executor:
        first = executor.compare(database, GOLD, PRED, comparators=("bird_set", "bag"))
        without_workers(executor)
        assert executor.compare(database, GOLD, PRED, comparators=("bird_set", "bag")) == first
        assert next(iter(executor.compare_many([Pair(database, GOLD, PRED)], comparators=("bird_set", "bag")))) == first
        assert executor.worker_pids() == []
        assert executor.compare(database, GOLD, PRED, comparators=("bag",)).values == {"bag": 1.0}
        assert len(executor.worker_pids()) == 1


@pytest.mark.parametrize("pred", ["SELECT abs(random()) % 2", "SELECT count(*) FROM t WHERE random() > 0"])
def test_chance_is_not_remembered(pred: str, database: Path) -> None:
    with Executor(workers=1) as executor:
        golds = {"SELECT abs(random()) % 2": "SELECT 1"}
        values = {executor.compare(database, golds.get(pred, "SELECT 3"), pred).values["bird_set"] for _ in range(200)}
    assert values == {0.0, 1.0}


def test_a_clock_is_not_remembered(database: Path) -> None:
    with Executor(workers=1) as executor:
        gold, pred = "SELECT 1", "SELECT strftime('%f', 'now') < '30'"
        seconds = {executor.compare(database, gold, pred).pred.seconds for _ in range(5)}
    assert len(seconds) == 5


def test_the_same_at_once_runs_once(database: Path) -> None:
    with Executor(workers=2) as executor, ThreadPoolExecutor(16) as threads:
        told = list(threads.map(lambda _: executor.compare(database, SLOW, SLOW.lower()), range(16)))
    assert {comparison.values["bird_set"] for comparison in told} == {1.0}
    assert len({comparison.pred.seconds for comparison in told}) == 1


def test_those_who_share_a_query_that_kills_its_worker_are_told_alike(database: Path) -> None:
    killer = "SELECT hex(zeroblob(4e8))"
    with Executor(workers=2, timeout=0.5) as executor, ThreadPoolExecutor(8) as threads:
        told = list(threads.map(lambda _: executor.compare(database, GOLD, killer), range(8)))
        assert executor.compare(database, GOLD, PRED).values["bird_set"] == 1.0
    assert len({comparison.pred.status for comparison in told}) == 1
    assert not told[0].pred.ok


def test_another_state_is_asked_anew(database: Path) -> None:
    with Executor(workers=1) as executor:
        assert executor.compare(database, "SELECT 3", GOLD).values["bird_set"] == 1.0
        connection = sqlite3.connect(database)
        connection.execute("INSERT INTO t VALUES (4)")
        connection.commit()
        connection.close()
        assert executor.compare(database, "SELECT 3", GOLD).values["bird_set"] == 0.0
        database.unlink()
        with pytest.raises(DatabaseNotFound):
            executor.compare(database, "SELECT 3", GOLD)


@pytest.mark.parametrize(("name", "value"), [("MOST", 3), ("MOST_CHARACTERS", 100)])
def test_memory_is_bounded(name: str, value: int, database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, name, value)
    with Executor(workers=1) as executor:
        for number in range(20):
            assert executor.compare(database, GOLD, f"SELECT {number}").values["bird_set"] == float(number == 3)
        pool = executor._home.pool()
        assert len(pool._remembered._known) <= 4
        assert pool._remembered._under_way == {}
