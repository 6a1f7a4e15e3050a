"""A database that changes under a running executor: replaced, rewritten, deleted, corrupted, or live with a WAL."""

import logging
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from verl_sql.database.executor import Executor
from verl_sql.database.faults import DatabaseNotFound, DatabaseUnusable

COUNT = "SELECT count(*) FROM item"


def counted(executor: Executor, database: Path) -> object:
    """Number of items that the executor sees."""
    rows = executor.execute(database, COUNT, keep_rows=1).rows
    assert rows is not None
    return rows[0][0]


def remade(path: Path, items: int) -> Path:
    """A database with so many items."""
    path.unlink(missing_ok=True)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE item(id INTEGER)")
        connection.executemany("INSERT INTO item VALUES (?)", [(i,) for i in range(items)])
    connection.close()
    return path


def test_replaced(executor: Executor, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    database = remade(tmp_path / "a.sqlite", 3)
    assert counted(executor, database) == 3
    assert executor.compare(database, COUNT, "SELECT 3").values == {"bird_set": 1.0}
    with caplog.at_level(logging.WARNING, logger="verl_sql.database"):
        os.replace(remade(tmp_path / "b.sqlite", 5), database)
        assert counted(executor, database) == 5
        assert executor.compare(database, COUNT, "SELECT 3").values == {"bird_set": 0.0}
    assert any("a.sqlite changed on disk" in record.message for record in caplog.records)


def test_rewritten_in_place(executor: Executor, tmp_path: Path) -> None:
    database = remade(tmp_path / "a.sqlite", 3)
    assert counted(executor, database) == 3
    other = remade(tmp_path / "b.sqlite", 4)
    assert other.stat().st_size == database.stat().st_size
    database.write_bytes(other.read_bytes())
    assert counted(executor, database) == 4


def test_written_by_another_connection(executor: Executor, tmp_path: Path) -> None:
    database = remade(tmp_path / "a.sqlite", 3)
    connection = sqlite3.connect(database)
    for expected in (4, 5, 6):
        connection.execute("INSERT INTO item VALUES (0)")
        connection.commit()
        assert counted(executor, database) == expected
    connection.close()


def test_deleted_and_made_again(executor: Executor, tmp_path: Path) -> None:
    database = remade(tmp_path / "a.sqlite", 3)
    assert counted(executor, database) == 3
    database.unlink()
    with pytest.raises(DatabaseNotFound, match=r"a\.sqlite is gone"):
        executor.execute(database, COUNT)
    with pytest.raises(DatabaseNotFound, match=r"a\.sqlite is gone"):
        executor.compare(database, COUNT, "SELECT 3")
    assert not database.exists()
    assert counted(executor, remade(database, 7)) == 7


@pytest.mark.parametrize("damage", ["garbage", "zeros", "truncated", "half", "empty"])
def test_corrupted(executor: Executor, tmp_path: Path, damage: str) -> None:
    database = remade(tmp_path / "a.sqlite", 5000)
    assert counted(executor, database) == 5000
    content = database.read_bytes()
    damaged = {
        "garbage": b"\xff" * len(content),
        "zeros": bytes(len(content)),
        "truncated": content[:100],
        "half": content[: len(content) // 2],
        "empty": b"",
    }[damage]
    database.write_bytes(damaged)
    with pytest.raises(DatabaseUnusable, match=r"a\.sqlite"):
        executor.compare(database, COUNT, "SELECT 5000")
    database.write_bytes(content)
    assert counted(executor, database) == 5000


def test_corrupt_page_inside(executor: Executor, tmp_path: Path) -> None:
    database = remade(tmp_path / "a.sqlite", 5000)
    content = bytearray(database.read_bytes())
    content[4096 * 3 : 4096 * 6] = b"\xa5" * (4096 * 3)
    database.write_bytes(content)
    with pytest.raises(DatabaseUnusable, match=r"a\.sqlite cannot be read"):
        executor.execute(database, "SELECT sum(id) FROM item")


def test_live_wal(executor: Executor, tmp_path: Path) -> None:
    database = remade(tmp_path / "a.sqlite", 3)
    writer = sqlite3.connect(database)
    assert writer.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",)
    assert counted(executor, database) == 3
    before = database.read_bytes()
    for expected in (4, 5):
        writer.execute("INSERT INTO item VALUES (0)")
        writer.commit()
        assert database.read_bytes() == before
        assert counted(executor, database) == expected
    writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert counted(executor, database) == 5
    writer.close()
    assert counted(executor, database) == 5


def test_clean_wal_database_gets_no_files_beside_it(executor: Executor, tmp_path: Path) -> None:
    database = remade(tmp_path / "a.sqlite", 3)
    writer = sqlite3.connect(database)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.close()
    assert counted(executor, database) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["a.sqlite"]


def test_copied_with_its_wal(executor: Executor, tmp_path: Path) -> None:
    database = remade(tmp_path / "a.sqlite", 3)
    writer = sqlite3.connect(database)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("INSERT INTO item VALUES (0)")
    writer.commit()
    copy = tmp_path / "copy.sqlite"
    shutil.copy(database, copy)
    shutil.copy(f"{database}-wal", f"{copy}-wal")
    writer.close()
    assert counted(executor, copy) == 4


def test_locked_by_a_writer(executor: Executor, tmp_path: Path) -> None:
    database = remade(tmp_path / "a.sqlite", 3)
    writer = sqlite3.connect(database, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DatabaseUnusable, match=r"a\.sqlite.*locked"):
        executor.execute(database, COUNT)
    writer.execute("ROLLBACK")
    writer.close()
    assert counted(executor, database) == 3


def test_odd_file_names(executor: Executor, tmp_path: Path) -> None:
    for name in ("a b.sqlite", "50%?#&mode=rwc.sqlite", "ünï.sqlite", "'q\".sqlite"):
        assert counted(executor, remade(tmp_path / name, 2)) == 2
