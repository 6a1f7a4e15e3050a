"""Schemas as SQLite has them: odd names, types, keys, and values in a fixed order."""

import sqlite3
from pathlib import Path

import pytest

from verl_sql.database.introspect import (
    ForeignKey,
    distinct_values,
    open_for_reading,
    quote_name,
    read_schema,
    schema_of,
    type_name,
)

DDL = """
CREATE TABLE "order" ("%_Change" int NOT NULL, `Home Town` varchar(20), "a.b", PRIMARY KEY ("a.b", "%_Change"));
CREATE TABLE child (
    id INTEGER PRIMARY KEY, x, y, other INT REFERENCES parent,
    FOREIGN KEY (x, y) REFERENCES "order" ("a.b", "%_Change"), FOREIGN KEY (id) REFERENCES `child` (id));
CREATE TABLE parent (pid INTEGER PRIMARY KEY);
CREATE VIEW seen AS SELECT 1 AS one;
"""


@pytest.fixture
def connection() -> sqlite3.Connection:
    made = sqlite3.connect(":memory:")
    made.executescript(DDL)
    return made


def test_tables_in_creation_order_without_views(connection: sqlite3.Connection) -> None:
    schema = schema_of(connection, "odd")
    assert [table.name for table in schema.tables] == ["order", "child", "parent"]


def test_columns_types_and_composite_key(connection: sqlite3.Connection) -> None:
    order = schema_of(connection, "odd").tables[0]
    assert [(c.name, c.declared_type, c.nullable) for c in order.columns] == [
        ("%_Change", "INT", False),
        ("Home Town", "varchar(20)", True),
        ("a.b", "", True),
    ]
    assert order.primary_key == ("a.b", "%_Change")


def test_foreign_keys_composite_self_and_without_columns(connection: sqlite3.Connection) -> None:
    keys = schema_of(connection, "odd").foreign_keys
    assert keys == (
        ForeignKey("child", ("x", "y"), "order", ("a.b", "%_Change")),
        ForeignKey("child", ("id",), "child", ("id",)),
        ForeignKey("child", ("other",), "parent", ("pid",)),
    )


@pytest.mark.parametrize(
    ("declared", "name"),
    [
        ("int", "INTEGER"),
        ("varchar(20)", "VARCHAR"),
        ("float(10,2)", "FLOAT"),
        ("bool", "BOOLEAN"),
        ("", "NULL"),
        ("NUMBER(3)", "NUMERIC"),
        ("unsigned big int", "INTEGER"),
        ("native character(70)", "TEXT"),
        ("double precision", "REAL"),
        (" date ", "DATE"),
        ("(", "NULL"),
    ],
)
def test_type_names_are_those_of_the_reference(declared: str, name: str) -> None:
    assert type_name(declared) == name


def test_distinct_values_come_in_storage_order_whatever_is_indexed() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript("CREATE TABLE t (v); INSERT INTO t VALUES ('c'), ('a'), ('c'), (NULL), ('b')")
    before = distinct_values(connection, "t", "v", 5)
    connection.executescript("CREATE INDEX i ON t (v); ANALYZE")
    assert before == distinct_values(connection, "t", "v", 5) == ["c", "a", None, "b"]
    assert distinct_values(connection, "t", "v", 2) == ["c", "a"]


def test_text_that_is_not_utf8_stays_different(tmp_path: Path) -> None:
    file = tmp_path / "bad.sqlite"
    made = sqlite3.connect(file)
    made.executescript("CREATE TABLE t (v); INSERT INTO t VALUES (CAST(x'ff' AS TEXT)), (CAST(x'fe' AS TEXT))")
    made.close()
    with open_for_reading(file) as connection:
        assert distinct_values(connection, "t", "v", 5) == ["\\xff", "\\xfe"]


def test_reading_never_creates_or_writes(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="gone"), open_for_reading(tmp_path / "gone.sqlite"):
        pass
    assert not (tmp_path / "gone.sqlite").exists()
    file = tmp_path / "a#b %20.sqlite"
    sqlite3.connect(file).executescript("CREATE TABLE t (v)")
    with open_for_reading(file) as connection, pytest.raises(sqlite3.OperationalError, match="readonly"):
        connection.execute("INSERT INTO t VALUES (1)")


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "x.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(sqlite3.DatabaseError):
        read_schema(tmp_path / "x.sqlite")


def test_quotes_in_names() -> None:
    assert quote_name('a"b') == '"a""b"'
