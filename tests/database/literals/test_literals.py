"""Literal search: what is found, that the database file stays as it is, and that an index is built once."""

import hashlib
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from verl_sql.database.executor import Executor
from verl_sql.database.faults import DatabaseNotFound
from verl_sql.database.literals import asearch, ensure_index, index_path, search
from verl_sql.database.literals.__main__ import main
from verl_sql.database.literals.search import LookupTimeout

ROWS = [
    ("Barcelona", "U.S.A.", 1),
    ("New-York", "Čapek", 2),
    ("O'Brien", "a <|im_end|> b", 3),
    ("BARCELONA", "usa", 3),
    ("Barcelona", "x" * 300, None),
    (b"blob", "", 12.5),
]


@pytest.fixture(scope="module")
def executor() -> Iterator[Executor]:
    with Executor(1) as made:
        yield made


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "town" / "town.sqlite"
    path.parent.mkdir()
    connection = sqlite3.connect(path)
    connection.execute('CREATE TABLE "odd name" (a TEXT, "b c" TEXT, n)')
    connection.executemany('INSERT INTO "odd name" VALUES (?, ?, ?)', ROWS)
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("barcelona", ["Barcelona", "BARCELONA"]),  # case aside both are the same; the frequent one is first
        ("Barcelone", ["BARCELONA", "Barcelona"]),  # a slip of spelling
        ("barc", ["BARCELONA", "Barcelona"]),  # a beginning
        ("USA", ["usa", "U.S.A."]),
        ("newyork", ["New-York"]),
        ("New York", ["New-York"]),
        ("capek", ["Čapek"]),
        ("obrien", ["O'Brien"]),
        ("im_end", ["a <|im_end|> b"]),
        ("x" * 300, []),  # too long to be a literal
        ("blob", []),  # a blob is no text
        ("", []),
        ("'; DROP TABLE x; --", []),
        ('" OR "', []),
        ("\x00\x00", []),
    ],
)
def test_what_is_found(executor: Executor, database: Path, text: str, values: list[str]) -> None:
    found = search(executor, ensure_index(database), text)
    assert sorted(literal.value for literal in found) == sorted(values)
    if values:
        assert found[0].value in values[:2]


def test_place_rows_and_filters(executor: Executor, database: Path) -> None:
    index = ensure_index(database)
    found = search(executor, index, "Barcelona")
    assert [(f.table, f.column, f.value, f.rows) for f in found] == [
        ("odd name", "a", "Barcelona", 2),
        ("odd name", "a", "BARCELONA", 1),
    ]
    assert search(executor, index, "Barcelona", table="ODD NAME", column="A", limit=1) == found[:1]
    assert search(executor, index, "Barcelona", column="b c") == []


async def test_in_an_event_loop(executor: Executor, database: Path) -> None:
    index = ensure_index(database)
    assert await asearch(executor, index, "usa") == search(executor, index, "usa")


def test_the_database_file_is_not_touched(database: Path) -> None:
    before = hashlib.sha256(database.read_bytes()).hexdigest(), database.stat().st_mtime_ns
    index = ensure_index(database)
    assert (hashlib.sha256(database.read_bytes()).hexdigest(), database.stat().st_mtime_ns) == before
    assert sorted(p.name for p in database.parent.iterdir()) == [".literals", "town.sqlite"]
    assert index.suffix not in (".sqlite", ".db", ".sqlite3")


def test_wal_mode_leaves_no_trace(database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.close()
    ensure_index(database)
    assert sorted(p.name for p in database.parent.iterdir()) == [".literals", "town.sqlite"]


def test_a_changed_database_gets_a_new_index(executor: Executor, database: Path) -> None:
    old = ensure_index(database)
    assert ensure_index(database) == old
    connection = sqlite3.connect(database)
    connection.execute("INSERT INTO \"odd name\" VALUES ('Reykjavik', NULL, NULL)")
    connection.commit()
    connection.close()
    new = ensure_index(database)
    assert new != old
    assert not old.exists()
    assert [literal.value for literal in search(executor, new, "reykjavik")] == ["Reykjavik"]


def test_a_read_only_folder_keeps_its_index_in_the_cache(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert ensure_index(database).parent == tmp_path / "cache" / "verl_sql" / "literals"
    assert [p.name for p in database.parent.iterdir()] == ["town.sqlite"]
    monkeypatch.setenv("VERL_SQL_LITERALS", str(tmp_path / "named"))
    assert index_path(database).parent == tmp_path / "named"


def test_a_missing_database(tmp_path: Path) -> None:
    with pytest.raises(DatabaseNotFound):
        ensure_index(tmp_path / "none.sqlite")


def test_many_processes_build_it_once(database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.executemany('INSERT INTO "odd name" VALUES (?, ?, 0)', [(f"n{i}", f"m{i}") for i in range(20_000)])
    connection.commit()
    connection.close()
    code = (
        "import sys, os; from verl_sql.database.literals import ensure_index;"
        "p = ensure_index(sys.argv[1]); print(p.stat().st_ino, p)"
    )
    asked = [
        subprocess.Popen([sys.executable, "-c", code, str(database)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = {process.communicate()[0] for process in asked}
    assert len(said) == 1  # one file, built once: a second build would have another inode
    assert [p.suffix for p in sorted((database.parent / ".literals").iterdir())] == [".fts", ".lock"]


def test_a_hundred_thousand_values_answer_in_milliseconds(executor: Executor, tmp_path: Path) -> None:
    path = tmp_path / "many.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (v TEXT)")
    connection.executemany("INSERT INTO t VALUES (?)", [(f"name{i} street",) for i in range(100_000)])
    connection.commit()
    connection.close()
    index = ensure_index(path)
    times = []
    for number in range(50):
        began = time.perf_counter()
        assert search(executor, index, f"name{number} street", limit=3)[0].value == f"name{number} street"
        times.append(time.perf_counter() - began)
    assert sorted(times)[25] < 0.05
    with pytest.raises(LookupTimeout):
        search(executor, index, "namex", timeout=1e-9)


def test_a_folder_is_indexed_ahead_of_a_run(database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(database.parent.parent), "--folder", str(tmp_path / "kept")]) == 0
    assert index_path(database, tmp_path / "kept").is_file()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "broken.sqlite").write_text("no database")
    assert main([str(tmp_path), "--folder", str(tmp_path / "kept")]) == 1
    assert "broken has no index of literals" in capsys.readouterr().err
    assert main([str(tmp_path / "none")]) == 2
