"""SQL that nobody planned for: a stated status in time, nothing written, memory bounded, the next query unaffected."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from verl_sql.database.executor import Executor
from verl_sql.database.limits import Limits

CASES = json.loads((Path(__file__).parent / "cases" / "hazards.json").read_text(encoding="utf-8"))
LARGE = {
    "10,000 parentheses": ("SELECT " + "(" * 10_000 + "1" + ")" * 10_000, {"error"}),
    "10,000 nested selects": ("SELECT * FROM (" * 10_000 + "SELECT 1" + ")" * 10_000, {"error"}),
    "10,000 NOTs": ("SELECT " + "NOT " * 10_000 + "1", {"error"}),
    "900 additions deep": ("SELECT " + "+".join(["1"] * 900), {"ok"}),
    "2,000 UNIONs": (" UNION ALL ".join(["SELECT 1"] * 2_000), {"error"}),
    "5,000 columns": ("SELECT " + ",".join(["1"] * 5_000), {"error"}),
    "100 joined tables": ("SELECT 1 FROM " + ",".join(f"item t{i}" for i in range(100)), {"error"}),
    "1 MB of values": ("SELECT 1 WHERE 1 IN (" + ",".join(["12345678"] * 100_000) + ")", {"ok", "timeout"}),
    "1 MB of comment": ("SELECT 1 /*" + "x" * 1_000_000 + "*/", {"ok", "too_large"}),
    "1 MB of one string": ("SELECT '" + "x" * 999_000 + "'", {"ok"}),
    "3 MB of SQL": ("SELECT '" + "x" * 3_000_000 + "'", {"too_large"}),
}
PRAGMAS = [
    line.split("#")[0].strip()
    for line in (Path(__file__).parent / "cases" / "pragmas.txt").read_text(encoding="utf-8").splitlines()
    if line.split("#")[0].strip()
]
SETTER = "PRAGMA user_version(7)"
SCHEMA_READERS = (
    "table_info table_xinfo table_list index_list index_info index_xinfo foreign_key_list database_list "
    "collation_list function_list module_list pragma_list compile_options user_version schema_version "
    "application_id encoding page_count page_size freelist_count data_version"
)
DEADLINE = 1.0
POOL_MEMORY = 2 * 1024 * 1024
"""Cap of this module's pool in KiB: two workers of 1 GiB."""


@pytest.fixture(scope="module")
def guarded() -> Iterator[Executor]:
    """A pool of its own, so that what hazards leave behind is not the other tests' trouble."""
    with Executor(workers=2, timeout=DEADLINE, limits=Limits(worker_memory_mb=1024)) as executor:
        yield executor


def timely(executor: Executor, database: Path, sql: str) -> str:
    """The status of a hazard. It must come within the deadline and one second; a machine that is itself starved of
    CPU time gets two more tries."""
    for _ in range(3):
        start = time.monotonic()
        execution = executor.execute(database, sql, timeout=DEADLINE, keep_rows=3)
        if time.monotonic() - start < DEADLINE + 1.0:
            return execution.status.value
    pytest.fail(f"{sql[:80]!r} took {time.monotonic() - start:.1f} s in the third try")


def assert_unharmed(executor: Executor, database: Path, before: bytes) -> None:
    """The file and its folder are as they were, the next query is answered rightly, memory is under the cap."""
    assert database.read_bytes() == before
    assert [p.name for p in database.parent.iterdir()] == [database.name]
    after = executor.execute(database, "SELECT name FROM item WHERE \"Home Town\" LIKE 'oslo'", timeout=20, keep_rows=5)
    assert after.rows == (("nut",), ("nut",))
    assert sum(map(resident_kib, executor.worker_pids())) < POOL_MEMORY


def resident_kib(pid: int) -> int:
    """Peak resident memory of a process, 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_hazard(case: dict, guarded: Executor, shop: Path) -> None:
    before = shop.read_bytes()
    assert timely(guarded, shop, case["sql"]) in case["status"]
    assert_unharmed(guarded, shop, before)


@pytest.mark.parametrize("name", LARGE)
def test_large_text(name: str, guarded: Executor, shop: Path) -> None:
    before = shop.read_bytes()
    sql, statuses = LARGE[name]
    assert timely(guarded, shop, sql) in statuses
    assert_unharmed(guarded, shop, before)


def test_pragmas_change_nothing(guarded: Executor, shop: Path) -> None:
    before = shop.read_bytes()
    allowed = {sql for sql in PRAGMAS if timely(guarded, shop, sql) == "ok"}
    assert allowed == {sql for sql in PRAGMAS if sql.split("(")[0].split()[-1] in SCHEMA_READERS.split()} - {SETTER}
    assert_unharmed(guarded, shop, before)


def test_pragma_functions_read_the_schema(guarded: Executor, shop: Path) -> None:
    execution = guarded.execute(
        shop, "SELECT name FROM pragma_table_info('item') ORDER BY cid", timeout=20, keep_rows=9
    )
    assert execution.rows == (("id",), ("name",), ("price",), ("Home Town",))


@pytest.mark.parametrize(
    ("poison", "probe", "expected"),
    [
        ("PRAGMA case_sensitive_like=ON", "SELECT 'A' LIKE 'a'", ((1,),)),
        ("PRAGMA reverse_unordered_selects=ON", "SELECT id FROM item", ((1,), (2,), (3,), (4,))),
        ("PRAGMA query_only=OFF", "DELETE FROM item", None),
        ("CREATE TEMP VIEW item AS SELECT 'evil' AS name", "SELECT name FROM item WHERE id = 1", (("bolt",),)),
        ("SELECT s FROM bad WHERE k = 'ff'", "SELECT name FROM item WHERE id = 2", (("nut",),)),
    ],
)
def test_nothing_leaks_into_the_next_query(poison: str, probe: str, expected: object, shop: Path) -> None:
    with Executor(workers=1, timeout=20.0) as one:
        one.execute(shop, poison, keep_rows=9)
        assert one.execute(shop, probe, keep_rows=9).rows == expected


def test_a_hazard_among_others_costs_only_itself(shop: Path) -> None:
    hang = next(case["sql"] for case in CASES if case["name"] == "search without progress")
    requests = [(shop, f"SELECT {i} FROM item") for i in range(40)]
    requests[20:20] = [(shop, hang)]
    with Executor(workers=2, timeout=2.0) as executor:
        statuses = [execution.status.value for execution in executor.execute_many(requests)]
    assert statuses == ["ok"] * 20 + ["timeout"] + ["ok"] * 20


def test_a_gold_that_kills_its_worker_is_run_once(shop: Path) -> None:
    hang = next(case["sql"] for case in CASES if case["name"] == "search without progress")
    with Executor(workers=1, timeout=1.0) as executor:
        first = executor.compare(shop, hang, "SELECT 1")
        assert (first.gold.status.value, first.pred.status.value) == ("timeout", "ok")
        start = time.monotonic()
        second = executor.compare(shop, hang, "SELECT 2")
        assert (second.gold.status.value, second.pred.status.value) == ("timeout", "ok")
        assert time.monotonic() - start < 1.0
    assert second.values == {"bird_set": 0.0}
