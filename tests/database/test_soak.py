"""Many calls, memory flat: a small edition of `benchmarks/soak.py`, which makes 200,000."""

from pathlib import Path

from verl_sql.database.executor import Executor
from verl_sql.database.limits import Limits


def resident_mib(executor: Executor) -> float:
    """Resident memory of the workers together."""
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in executor.worker_pids()]
    return sum(pages) * 4096 / 2**20


def calls(executor: Executor, database: Path, first: int, count: int) -> None:
    """So many different single comparisons, some of them failing."""
    for i in range(first, first + count):
        pred = ("SELECT {} FROM item", "SELECT nope{} FROM item", "SELECT hex(zeroblob(20000)), {}")[i % 3].format(i)
        executor.compare(database, f"SELECT {i} FROM item", pred, timeout=20.0)


def test_memory_is_flat(shop: Path) -> None:
    with Executor(2, limits=Limits(remembered_mb=4)) as executor:
        calls(executor, shop, 0, 1_500)
        pids, before = executor.worker_pids(), resident_mib(executor)
        calls(executor, shop, 1_500, 2_500)
        assert executor.worker_pids() == pids
        assert resident_mib(executor) < before + 3.0
