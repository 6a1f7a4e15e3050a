"""The pool's life: workers killed from outside, forks, scripts without a guard, daemonic parents, a clean end."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from verl_sql.database.executor import Executor, Pair
from verl_sql.database.limits import Limits

COUNT = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT {}) SELECT count(*) FROM c"
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c"


def ended(pid: int, seconds: float = 10.0) -> bool:
    """Whether a process is gone (or a zombie of somebody else) within some seconds."""
    for _ in range(int(seconds / 0.02)):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def wait_busy(executor: Executor) -> int:
    """The pid of the worker, once it has one that burns CPU time."""
    while True:
        for pid in executor.worker_pids():
            fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[11]) > 10:
                return pid
        time.sleep(0.01)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_worker_killed_from_outside_costs_one_retry(shop: Path, number: int) -> None:
    with Executor(1, timeout=300.0) as executor:
        found: list[object] = []
        sql = COUNT.format(6_000_000)
        thread = threading.Thread(target=lambda: found.append(executor.execute(shop, sql, keep_rows=1).rows))
        thread.start()
        victim = wait_busy(executor)
        os.kill(victim, number)
        thread.join(300)
        assert found == [((6_000_000,),)]
        assert executor.worker_pids() != [victim]


def test_a_worker_killed_in_a_batch_loses_no_answer(shop: Path) -> None:
    pairs = [Pair(shop, f"SELECT {i}", COUNT.format(400_000 + i)) for i in range(30)]
    pairs += [Pair(shop, f"SELECT {i}", f"SELECT {i}") for i in range(500)]
    with Executor(2, timeout=300.0) as executor:
        stream = executor.compare_many(pairs)
        values = [next(stream).values["bird_set"]]
        for pid in executor.worker_pids():
            os.kill(pid, signal.SIGKILL)
        values += [comparison.values["bird_set"] for comparison in stream]
    assert values == [0.0] * 30 + [1.0] * 500


def test_a_query_that_kills_every_worker_is_an_error(shop: Path) -> None:
    with Executor(1, timeout=300.0) as executor:
        found: list[object] = []
        thread = threading.Thread(target=lambda: found.append(executor.compare(shop, "SELECT 1", ENDLESS)))
        thread.start()
        first = wait_busy(executor)
        os.kill(first, signal.SIGKILL)
        while executor.worker_pids() in ([], [first]):
            time.sleep(0.01)
        os.kill(wait_busy(executor), signal.SIGKILL)
        thread.join(300)
        (comparison,) = found
        assert comparison.gold.ok
        assert comparison.pred.status == "error"
        assert "died 2 times" in comparison.pred.message
        assert executor.execute(shop, "SELECT 1").ok


def test_a_stopped_worker_is_replaced(shop: Path) -> None:
    with Executor(1, timeout=1.0, limits=Limits(grace=0.3)) as executor:
        executor.execute(shop, "SELECT 1")
        threading.Timer(0.2, lambda: os.kill(executor.worker_pids()[0], signal.SIGSTOP)).start()
        assert executor.execute(shop, ENDLESS).status == "timeout"
        assert executor.execute(shop, "SELECT 1").ok


def test_a_slow_batch_is_shared_with_an_idle_worker(shop: Path) -> None:
    with Executor(2, timeout=2.0) as executor:
        start = time.monotonic()
        statuses = [
            e.status.value for e in executor.execute_many([(shop, f"{ENDLESS} WHERE x > {i}") for i in range(4)])
        ]
        assert statuses == ["timeout"] * 4
        assert time.monotonic() - start < 7.5


def test_memory_of_a_worker_is_capped_and_it_is_replaced(shop: Path) -> None:
    with Executor(1, timeout=30.0, limits=Limits(worker_memory_mb=128)) as executor:
        executor.execute(shop, "SELECT 1")
        before = executor.worker_pids()
        numbers = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 60)"
        execution = executor.execute(shop, f"{numbers} SELECT zeroblob(9000000) FROM c ORDER BY x DESC")
        assert execution.status == "too_large"
        assert executor.execute(shop, "SELECT 1").ok
        assert executor.worker_pids() != before


def test_close_leaves_no_process_thread_or_descriptor(shop: Path) -> None:
    descriptors, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    for _ in range(3):
        with Executor(2, timeout=5.0) as executor:
            list(executor.compare_many([Pair(shop, f"SELECT {i}", "SELECT 1") for i in range(50)]))
            pids = executor.worker_pids()
            assert pids
        assert all(ended(pid) for pid in pids)
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert threading.active_count() == threads


def test_a_forgotten_executor_ends_its_workers(shop: Path) -> None:
    executor = Executor(1, timeout=20.0)
    executor.execute(shop, "SELECT 1")
    pids = executor.worker_pids()
    del executor
    assert all(ended(pid) for pid in pids)


def run_script(body: str, *arguments: str) -> list[str]:
    """Run a script that has no `if __name__` guard; its output lines. It must end within a minute."""
    command = [sys.executable, "-c", textwrap.dedent(body), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout.split()


def test_a_script_without_guard_that_never_closes(shop: Path) -> None:
    lines = run_script(
        """
        import sys
        from verl_sql.database import shared_executor
        executor = shared_executor(workers=2)
        print(executor.compare(sys.argv[1], "SELECT 1", "SELECT 1").values["bird_set"])
        list(executor.execute_many([(sys.argv[1], f"SELECT {i}") for i in range(200)]))
        print(*executor.worker_pids())
        """,
        str(shop),
    )
    assert lines[0] == "1.0"
    assert lines[1:]
    assert all(ended(int(pid)) for pid in lines[1:])


def test_workers_end_when_their_parent_is_killed(shop: Path) -> None:
    body = f"""
        import os, sys, threading, time
        from verl_sql.database import Executor
        executor = Executor(1, timeout=5.0)
        executor.execute(sys.argv[1], "SELECT 1")
        threading.Thread(target=executor.execute, args=(sys.argv[1], {ENDLESS!r}), daemon=True).start()
        time.sleep(0.3)
        print(*executor.worker_pids(), flush=True)
        os.kill(os.getpid(), 9)
        """
    command = [sys.executable, "-c", textwrap.dedent(body), str(shop)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.split()
    assert all(ended(int(pid), 15.0) for pid in done.stdout.split())


def test_workers_hold_nothing_heavy() -> None:
    modules = run_script(
        """
        import sys
        sys.path[:] = [path for path in sys.path]
        before = set(sys.modules)
        import verl_sql.database.worker
        print(*sorted({name.split(".")[0] for name in set(sys.modules) - before}))
        """
    )
    assert not {"torch", "verl", "ray", "numpy", "pyarrow", "sqlglot", "asyncio", "multiprocessing"} & set(modules)


def _in_child(database: str, inherited: Executor | None, answers: object) -> None:
    """What a child process does: its own executor, or one it got by fork."""
    executor = inherited or Executor(1, timeout=20.0)
    answers.put((executor.execute(database, "SELECT count(*) FROM item", keep_rows=1).rows, executor.worker_pids()))
    executor.close()


DAEMONIC = """
import json, multiprocessing, sys
from verl_sql.database.executor import Executor

def child(database, answers):
    with Executor(1, timeout=20.0) as executor:
        rows = executor.execute(database, "SELECT count(*) FROM item", keep_rows=1).rows
        answers.put((rows, executor.worker_pids()))

if __name__ == "__main__":
    context = multiprocessing.get_context(sys.argv[2])
    answers = context.Queue()
    process = context.Process(target=child, args=(sys.argv[1], answers), daemon=True)
    process.start()
    print(json.dumps(answers.get(timeout=60)))
    process.join(30)
"""


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_works_in_daemonic_children(shop: Path, tmp_path: Path, method: str) -> None:
    script = tmp_path / "daemonic.py"
    script.write_text(DAEMONIC)
    command = [sys.executable, str(script), str(shop), method]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    rows, pids = json.loads(done.stdout)
    assert rows == [[4]]
    assert pids
    assert all(ended(pid) for pid in pids)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_an_executor_survives_a_fork_on_both_sides(shop: Path) -> None:
    context = multiprocessing.get_context("fork")
    with Executor(1, timeout=20.0) as executor:
        executor.execute(shop, "SELECT 1")
        mine = executor.worker_pids()
        answers = context.Queue()
        child = context.Process(target=_in_child, args=(str(shop), executor, answers))
        child.start()
        rows, theirs = answers.get(timeout=60)
        child.join(30)
        assert child.exitcode == 0
        assert rows == ((4,),)
        assert not set(mine) & set(theirs)
        assert executor.execute(shop, "SELECT 2", keep_rows=1).rows == ((2,),)
        assert executor.worker_pids() == mine


def test_workers_that_cannot_start_are_told(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from verl_sql.database import process
    from verl_sql.database.faults import ExecutorError

    monkeypatch.setattr(process, "_BOOT", "raise SystemExit(7)")
    executor = Executor(1, timeout=5.0)
    with pytest.raises(ExecutorError, match="died before their first answer"):
        executor.execute(shop, "SELECT 1")
    executor.close()


def test_a_large_parent_does_not_wear_its_workers_out(shop: Path) -> None:
    ballast = bytearray(os.urandom(1)) * (192 << 20)  # a process inherits its parent's peak, as ru_maxrss tells it
    with Executor(1, limits=Limits(recycle_memory_mb=96)) as executor:
        executor.execute(shop, "SELECT 1")
        workers = executor.worker_pids()
        for number in range(20):
            assert executor.execute(shop, f"SELECT {number}").ok
        assert executor.worker_pids() == workers
        assert len(workers) == 1
    assert len(ballast) == 192 << 20


def test_a_worker_that_grew_is_replaced(shop: Path) -> None:
    with Executor(1, limits=Limits(recycle_memory_mb=48, remembered_mb=0)) as executor:
        executor.execute(shop, "SELECT 1")
        (first,) = executor.worker_pids()
        numbers = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 600)"
        rows = f"{numbers} SELECT hex(randomblob(60000)) FROM c"
        executor.compare(shop, rows, rows.replace("60000", "60001"), comparators=("bag",))
        executor.execute(shop, "SELECT 2")
        assert executor.worker_pids() != [first]
