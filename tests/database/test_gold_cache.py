"""Gold results on disk: written, read back, never used for other content."""

import logging
import sqlite3
from pathlib import Path

import pytest

from verl_sql.database.execution import Execution, Status
from verl_sql.database.executor import Executor
from verl_sql.database.faults import DatabaseNotFound
from verl_sql.database.gold_cache import GoldCache, content_digest

GOLD = "SELECT name FROM item ORDER BY id"


def change(database: Path, sql: str = "DELETE FROM item WHERE id = 1") -> None:
    """Write to a database."""
    connection = sqlite3.connect(database)
    connection.execute(sql)
    connection.commit()
    connection.close()


def test_written_and_read_back(executor: Executor, fresh: Path, tmp_path: Path) -> None:
    cache = GoldCache(tmp_path / "deep" / "golds.jsonl")
    assert cache.get(fresh, GOLD) is None
    written = cache.put(fresh, GOLD, executor.execute(fresh, GOLD, digest=True))
    empty = cache.put(fresh, "SELECT a FROM empty_t", executor.execute(fresh, "SELECT a FROM empty_t", digest=True))
    failed = cache.put(fresh, "SELEC", executor.execute(fresh, "SELEC", digest=True))
    again = GoldCache(tmp_path / "deep" / "golds.jsonl")
    assert len(again) == 3
    assert again.get(fresh, GOLD) == written
    assert (written.status, written.n_rows, written.is_empty) == (Status.OK, 4, False)
    assert written.seconds > 0
    assert empty.is_empty
    assert (failed.status, failed.digest, failed.is_empty) == (Status.ERROR, "", False)
    assert "syntax error" in failed.message


def test_fill_runs_only_what_is_missing(executor: Executor, fresh: Path, tmp_path: Path) -> None:
    path = tmp_path / "golds.jsonl"
    requests = [(fresh, GOLD), (fresh, "SELECT 1"), (fresh, GOLD), (tmp_path / "no.sqlite", "SELECT 1")]
    results = GoldCache(path).fill(executor, requests)
    assert [r.n_rows if r else None for r in results] == [4, 1, 4, None]
    size = path.stat().st_size
    assert GoldCache(path).fill(executor, requests) == results
    assert path.stat().st_size == size


def test_digests_compare_as_bird_set(executor: Executor, fresh: Path, tmp_path: Path) -> None:
    cache = GoldCache(tmp_path / "golds.jsonl")
    one, other = cache.fill(executor, [(fresh, "SELECT price FROM item"), (fresh, "SELECT price FROM item ORDER BY 1")])
    assert one is not None
    assert other is not None
    assert one.digest == other.digest


def test_stale_entries_are_noticed(
    executor: Executor, fresh: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = GoldCache(tmp_path / "golds.jsonl")
    cache.fill(executor, [(fresh, GOLD)])
    change(fresh)
    with caplog.at_level(logging.WARNING, logger="verl_sql.database"):
        assert cache.get(fresh, GOLD) is None
        assert cache.get(fresh, GOLD) is None
    assert cache.stale == 2
    assert sum("stale" in record.message and "fresh.sqlite" in record.message for record in caplog.records) == 1
    (renewed,) = cache.fill(executor, [(fresh, GOLD)])
    assert renewed is not None
    assert renewed.n_rows == 3


def test_a_moved_database_keeps_its_entries(executor: Executor, fresh: Path, tmp_path: Path) -> None:
    GoldCache(tmp_path / "golds.jsonl").fill(executor, [(fresh, GOLD)])
    moved = fresh.rename(tmp_path / "moved.sqlite")
    found = GoldCache(tmp_path / "golds.jsonl").get(moved, GOLD)
    assert found is not None
    assert found.n_rows == 4


def test_broken_lines_are_skipped_and_said(
    executor: Executor, fresh: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "golds.jsonl"
    GoldCache(path).fill(executor, [(fresh, GOLD)])
    path.write_text("nonsense\n{}\n" + path.read_text() + '{"database": "x', encoding="utf-8")
    with caplog.at_level(logging.WARNING, logger="verl_sql.database"):
        assert len(GoldCache(path)) == 1
    assert [f"line {n}" in r.message for n, r in zip((1, 2, 4), caplog.records, strict=True)] == [True] * 3


def test_only_golds_are_kept(fresh: Path, tmp_path: Path) -> None:
    cache = GoldCache(tmp_path / "golds.jsonl")
    with pytest.raises(ValueError, match="digest=True"):
        cache.put(fresh, GOLD, Execution(Status.OK, n_rows=1))
    with pytest.raises(ValueError, match="locked"):
        cache.put(fresh, GOLD, Execution(Status.ERROR, message="locked", data_fault=True))
    with pytest.raises(DatabaseNotFound, match="gone"):
        cache.get(tmp_path / "no.sqlite", GOLD)


def test_content_digest_sees_the_wal(fresh: Path) -> None:
    before = content_digest(fresh)
    writer = sqlite3.connect(fresh)
    writer.execute("PRAGMA journal_mode=WAL")
    first = content_digest(fresh)
    writer.execute("INSERT INTO empty_t VALUES (1)")
    writer.commit()
    assert len({before, first, content_digest(fresh)}) == 3
    writer.close()
