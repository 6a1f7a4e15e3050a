"""Executor: what single, bulk and asynchronous calls give, and how the kinds of fault are told apart."""

import asyncio
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from verl_sql.database.execution import Execution, Status
from verl_sql.database.executor import Executor, Pair, default_workers, shared_executor
from verl_sql.database.faults import DatabaseNotFound, DatabaseUnusable, ExecutorError
from verl_sql.database.limits import Limits

ALL = ("bird_set", "bag", "ordered", "test_suite", "soft_f1", "qatch")


def test_rows_columns_and_counts(executor: Executor, shop: Path) -> None:
    execution = executor.execute(shop, "SELECT name, name, price FROM item ORDER BY id", keep_rows=2)
    assert execution.status is Status.OK
    assert execution.columns == ("name", "name", "price")
    assert execution.rows == (("bolt", "bolt", 1.5), ("nut", "nut", 2.0))
    assert (execution.n_rows, execution.truncated, execution.all_null) == (4, True, False)
    assert 0.0 <= execution.seconds < 20.0


@pytest.mark.parametrize(
    ("sql", "is_empty", "all_null", "n_rows"),
    [
        ("SELECT a FROM empty_t", True, False, 0),
        ("SELECT max(a), sum(a) FROM empty_t", False, True, 1),
        ("SELECT count(a) FROM empty_t", False, False, 1),
        ("VALUES (NULL), (1)", False, False, 2),
    ],
)
def test_emptiness(executor: Executor, shop: Path, sql: str, is_empty: bool, all_null: bool, n_rows: int) -> None:
    execution = executor.execute(shop, sql)
    assert (execution.is_empty, execution.all_null, execution.n_rows) == (is_empty, all_null, n_rows)
    assert execution.rows is None


def test_text_that_is_not_utf8_keeps_its_bytes_apart(executor: Executor, shop: Path) -> None:
    rows = executor.execute(shop, "SELECT s FROM bad ORDER BY k", keep_rows=9).rows
    assert rows == (("a\udcfeb",), ("a\udcffb",), ("ab",))
    pair = executor.compare(shop, "SELECT s FROM bad WHERE k='ff'", "SELECT s FROM bad WHERE k='fe'", comparators=ALL)
    assert pair.values["bird_set"] == 0.0


def test_quoted_strings_and_like_are_sqlites_own(executor: Executor, shop: Path) -> None:
    assert executor.execute(shop, 'SELECT id FROM item WHERE name = "bolt"', keep_rows=1).rows == ((1,),)
    assert executor.execute(shop, "SELECT `Home Town` FROM item WHERE name LIKE 'BOLT'", keep_rows=1).rows == (
        ("Rome",),
    )
    assert executor.execute(shop, "SELECT name FROM sqlite_master WHERE type='view'", keep_rows=1).rows == (("dear",),)
    assert executor.execute(shop, "SELECT value FROM json_each('[7]')", keep_rows=1).rows == ((7,),)


def test_comparison_values(executor: Executor, shop: Path) -> None:
    pair = executor.compare(shop, "SELECT name FROM item", "SELECT DISTINCT name FROM item", comparators=ALL)
    assert pair.values["bird_set"] == 1.0
    assert pair.values["bag"] == 0.0
    assert pair.values["test_suite"] == 1.0
    assert (pair.values["cp"], pair.values["cr"], pair.values["tc"]) == (1.0, 1.0, 0.75)
    assert set(pair.values) == {"bird_set", "bag", "ordered", "test_suite", "soft_f1", "cp", "cr", "tc"}


@pytest.mark.parametrize(
    "pred", ["", ";", "-- nothing", "/* nothing */", "SELECT", "SELECT 1; SELECT 2", "DELETE FROM item"]
)
def test_what_is_no_query_never_equals_an_empty_gold(executor: Executor, shop: Path, pred: str) -> None:
    pair = executor.compare(shop, "SELECT a FROM empty_t", pred, comparators=ALL)
    assert not pair.pred.ok
    assert all(value == 0.0 for value in pair.values.values())


def test_a_failing_gold_matches_nothing(executor: Executor, shop: Path) -> None:
    pair = executor.compare(shop, "SELECT nope FROM item", "SELECT nope FROM item", comparators=ALL)
    assert pair.gold.status is Status.ERROR
    assert pair.values["bird_set"] == pair.values["test_suite"] == 0.0
    assert pair.values["cp"] is None


def test_no_statement_is_told(executor: Executor, shop: Path) -> None:
    assert executor.execute(shop, "-- x").no_statement
    assert not executor.execute(shop, "SELEC 1").no_statement


def test_time_and_random_are_not_remembered(executor: Executor, shop: Path) -> None:
    for sql in ("SELECT random()", "SELECT julianday('now')", "SELECT strftime('%f')", "SELECT hex(randomblob(8))"):
        seen = {executor.execute(shop, sql, keep_rows=1).rows for _ in range(12)}
        assert len(seen) > 1, sql


def test_compare_many_keeps_the_order(executor: Executor, shop: Path) -> None:
    golds = [f"SELECT id FROM item WHERE id = {i % 7}" for i in range(1300)]
    pairs = [Pair(shop, gold, f"SELECT {i % 5}") for i, gold in enumerate(golds)]
    values = [c.values["bird_set"] for c in executor.compare_many(pairs)]
    expected = [float(1 <= i % 7 <= 4 and i % 7 == i % 5) for i in range(1300)]
    assert values == expected


def test_compare_many_streams(executor: Executor, shop: Path) -> None:
    taken = 0

    def endless():
        nonlocal taken
        while True:
            taken += 1
            yield Pair(shop, "SELECT 1", "SELECT 1")

    stream = executor.compare_many(endless())
    assert next(stream).values == {"bird_set": 1.0}
    assert taken <= 5000


def test_nothing_asked_nothing_given(executor: Executor) -> None:
    assert executor.execute_many([]) == []
    assert list(executor.compare_many([])) == []


def test_many_threads_at_once(executor: Executor, shop: Path) -> None:
    def check(i: int) -> bool:
        return executor.compare(shop, f"SELECT {i % 11}", f"SELECT {i % 3}").values["bird_set"] == float(
            i % 11 == i % 3
        )

    with ThreadPoolExecutor(16) as threads:
        assert all(threads.map(check, range(400)))


async def test_event_loop_waits_without_threads(executor: Executor, shop: Path) -> None:
    before = threading.active_count()
    calls = [executor.acompare(shop, f"SELECT {i % 9}", "SELECT 3") for i in range(200)]
    values = [comparison.values["bird_set"] for comparison in await asyncio.gather(*calls)]
    assert values == [float(i % 9 == 3) for i in range(200)]
    assert threading.active_count() <= before + 1
    assert (await executor.aexecute(shop, "SELECT 1", keep_rows=1)).rows == ((1,),)


async def test_a_cancelled_call_harms_nobody(executor: Executor, shop: Path) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c"
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(executor.aexecute(shop, endless, timeout=1.0), 0.1)
    assert (await executor.aexecute(shop, "SELECT 5", keep_rows=1)).rows == ((5,),)


def test_missing_database(executor: Executor, tmp_path: Path) -> None:
    missing = tmp_path / "missing.sqlite"
    with pytest.raises(DatabaseNotFound, match=r"missing\.sqlite"):
        executor.execute(missing, "SELECT 1")
    assert not missing.exists()


@pytest.mark.parametrize("content", [b"", b"no database at all", b"SQLite format 3\x00" + b"\x07" * 5000])
def test_unusable_database(executor: Executor, tmp_path: Path, content: bytes) -> None:
    broken = tmp_path / "broken.sqlite"
    broken.write_bytes(content)
    with pytest.raises(DatabaseUnusable, match=r"broken\.sqlite"):
        executor.compare(broken, "SELECT * FROM item", "SELECT 1")


def test_bulk_goes_on_past_a_bad_database(executor: Executor, shop: Path, tmp_path: Path) -> None:
    pairs = [Pair(shop, "SELECT 1", "SELECT 1"), Pair(tmp_path / "no.sqlite", "SELECT 1", "SELECT 1")] * 3
    comparisons = list(executor.compare_many(pairs))
    assert [c.gold.data_fault for c in comparisons] == [False, True] * 3
    assert [c.values["bird_set"] for c in comparisons] == [1.0, 0.0] * 3
    assert "no.sqlite" in comparisons[1].gold.message


def test_caps(shop: Path) -> None:
    rows = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT {}) SELECT x, hex(zeroblob(50)) FROM c"
    limits = Limits(max_rows=1000, max_bytes=400_000, keep_bytes=2_000, max_cell_bytes=10_000)
    with Executor(1, timeout=20.0, limits=limits) as capped:
        whole = capped.execute(shop, rows.format(1000), keep_rows=500)
        assert (whole.status, whole.n_rows, whole.truncated) == (Status.OK, 1000, True)
        assert whole.rows is not None
        assert 0 < len(whole.rows) < 20
        assert "more than 1000 rows" in capped.execute(shop, rows.format(1001)).message
        assert "bytes" in capped.execute(shop, rows.format(100).replace("50", "2000")).message
        assert capped.execute(shop, "SELECT zeroblob(10001)").status is Status.TOO_LARGE
        assert capped.compare(shop, rows.format(1001), rows.format(1001)).values == {"bird_set": 0.0}


def test_above_the_display_cap_comparison_stays_exact(executor: Executor, shop: Path) -> None:
    rows = (
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 30000) SELECT x + (x = 29999) * {} FROM c"
    )
    assert executor.compare(shop, rows.format(0), rows.format(0) + " ORDER BY 1 DESC").values == {"bird_set": 1.0}
    assert executor.compare(shop, rows.format(0), rows.format(99999)).values == {"bird_set": 0.0}


def test_a_timeout_is_for_each_query_and_not_remembered_for_longer_ones(shop: Path) -> None:
    slow = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c LIMIT 3000000) SELECT max(x) FROM c"
    with Executor(1) as executor:
        assert executor.execute(shop, slow, timeout=0.05).status is Status.TIMEOUT
        assert executor.execute(shop, slow, timeout=0.01).status is Status.TIMEOUT
        assert executor.execute(shop, slow, timeout=60.0, keep_rows=1).rows == ((3_000_000,),)
        pair = executor.compare(shop, slow + " WHERE 1", "SELECT 1", timeout=0.05)
        assert (pair.gold.status, pair.pred.status) == (Status.TIMEOUT, Status.OK)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), 1e9])
def test_timeouts_that_cannot_be_kept(timeout: float, executor: Executor, shop: Path) -> None:
    with pytest.raises(ValueError, match="timeout"):
        executor.execute(shop, "SELECT 1", timeout=timeout)
    with pytest.raises(ValueError, match="timeout"):
        Executor(timeout=timeout)


def test_unknown_comparator(executor: Executor, shop: Path) -> None:
    with pytest.raises(ValueError, match="no comparator fuzzy"):
        executor.compare(shop, "SELECT 1", "SELECT 1", comparators=("fuzzy",))


def test_closed_executor_says_so(shop: Path) -> None:
    executor = Executor(1)
    executor.execute(shop, "SELECT 1")
    executor.close()
    executor.close()
    with pytest.raises(ExecutorError, match="closed"):
        executor.execute(shop, "SELECT 1")


def test_closing_fails_what_waits(shop: Path) -> None:
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c"
    executor = Executor(1, timeout=60.0)
    failures: list[str] = []

    def ask() -> None:
        with pytest.raises(ExecutorError) as caught:
            executor.execute(shop, endless)
        failures.append(str(caught.value))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    while not executor.worker_pids():
        threading.Event().wait(0.01)
    executor.close()
    for thread in threads:
        thread.join(10)
    assert failures == ["the executor was closed"] * 3


def test_shared_executor_is_one_pool(shop: Path) -> None:
    first, second = shared_executor(workers=1, timeout=20.0), shared_executor(timeout=7.0)
    assert first is shared_executor(timeout=20.0)
    assert (first.timeout, second.timeout) == (20.0, 7.0)
    first.execute(shop, "SELECT 1")
    assert first.worker_pids() == second.worker_pids() != []
    first.close()
    assert shared_executor(timeout=7.0).execute(shop, "SELECT 1").ok
    shared_executor(timeout=7.0).close()


def test_default_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERL_SQL_WORKERS", "3")
    assert default_workers() == 3
    monkeypatch.delenv("VERL_SQL_WORKERS")
    assert 1 <= default_workers() <= 16


def test_variants_must_all_agree(executor: Executor, shop: Path, fresh: Path) -> None:
    with sqlite3.connect(fresh) as connection:
        connection.execute("INSERT INTO item VALUES (9, 'cog', 9.0, 'Bari')")
    connection.close()
    gold, pred = "SELECT count(*) FROM item", "SELECT 4"
    assert executor.compare(shop, gold, pred, comparators=("test_suite",)).values == {"test_suite": 1.0}
    with_variant = executor.compare(shop, gold, pred, comparators=("test_suite",), variants=(shop, fresh))
    assert with_variant.values == {"test_suite": 0.0}
    with pytest.raises(DatabaseNotFound, match="gone"):
        executor.compare(shop, gold, pred, comparators=("test_suite",), variants=(fresh.with_name("x.sqlite"),))


def test_execution_defaults() -> None:
    failed = Execution(Status.ERROR, message="x")
    assert not failed.ok
    assert not failed.is_empty
