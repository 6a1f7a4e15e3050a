"""A day of training in one go: 200,000 single comparisons from 16 threads, and what memory, processes and files did.

    python benchmarks/soak.py [--calls 200000] [--workers 2] [--threads 16]

A call in fifty is a hazard of each kind (a timeout, a forbidden statement, a result that is too large). Resident memory
of parent and workers is printed every tenth of the way; it must be flat after the first.
"""

import argparse
import os
import sqlite3
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from verl_sql.database.executor import Executor
from verl_sql.database.limits import Limits

HAZARDS = (
    "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c",
    "DELETE FROM item",
    "SELECT hex(zeroblob(4e8))",
    "SELECT s FROM item WHERE",
)


def build(path: Path) -> Path:
    """A table of a thousand rows."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL)")
        connection.executemany("INSERT INTO item VALUES (?, ?, ?)", [(i, f"n{i % 37}", i / 7) for i in range(1000)])
    connection.close()
    return path


def call(executor: Executor, database: Path, i: int) -> str:
    """One comparison; the status of its prediction."""
    gold = f"SELECT name, count(*) FROM item WHERE id % {i % 500 + 1} = 0 GROUP BY name"
    pred = HAZARDS[i // 50 % len(HAZARDS)] if i % 50 == 0 else f"{gold} HAVING count(*) > {i % 977}"
    return executor.compare(database, gold, pred, timeout=0.05 if i % 50 == 0 else 20.0).pred.status.value


def resident_mib(pid: int) -> float:
    """Resident memory of a process; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return 0.0


def describe(executor: Executor) -> str:
    """Memory of parent and workers, and the parent's open files."""
    workers = " ".join(f"{resident_mib(pid):.1f}" for pid in executor.worker_pids())
    return (
        f"parent {resident_mib(os.getpid()):.1f} MiB, workers {workers} MiB, files {len(os.listdir('/proc/self/fd'))}"
    )


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.threads) as threads:
        database, counts, start = build(Path(folder) / "soak.sqlite"), dict[str, int](), time.perf_counter()
        with Executor(options.workers, limits=Limits(remembered_mb=32)) as executor:
            for tenth in range(10):
                numbers = range(tenth * options.calls // 10, (tenth + 1) * options.calls // 10)
                for status in threads.map(lambda i: call(executor, database, i), numbers):
                    counts[status] = counts.get(status, 0) + 1
                print(
                    f"{numbers.stop:>8} calls  {time.perf_counter() - start:7.1f} s  {describe(executor)}", flush=True
                )
        print("statuses", counts)


if __name__ == "__main__":
    main()
