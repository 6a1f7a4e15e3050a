"""Tables, columns, keys and sample values of a SQLite file, read through a read-only connection."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

# How the reference M-Schema code (through SQLAlchemy's SQLite dialect) names a declared type.
_TYPE_NAMES = {
    **{name: name for name in ("BIGINT", "BLOB", "BOOLEAN", "CHAR", "DATE", "DATETIME", "DECIMAL", "DOUBLE", "FLOAT")},
    **{name: name for name in ("INTEGER", "JSON", "NUMERIC", "NVARCHAR", "REAL", "SMALLINT", "TEXT", "TIME")},
    **{name: name for name in ("TIMESTAMP", "VARCHAR")},
    **{"BOOL": "BOOLEAN", "INT": "INTEGER", "DATE_CHAR": "DATE", "DATETIME_CHAR": "DATETIME", "TIME_CHAR": "TIME"},
}
_AFFINITIES = (("INT", "INTEGER"), ("CHAR", "TEXT"), ("CLOB", "TEXT"), ("TEXT", "TEXT"), ("BLOB", "NULL"))
_REAL_AFFINITIES = (("REAL", "REAL"), ("FLOA", "REAL"), ("DOUB", "REAL"))
_FOREIGN_KEY = re.compile(r'FOREIGN\s+KEY\s*\(\s*([^)]+?)\s*\)\s+REFERENCES\s+(?:"([^"]+)"|(\w+))\s*\(', re.IGNORECASE)
_WRITTEN_NAME = re.compile(r'"([^"]+)"|(\w+)')


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    Attributes:
        name: as declared.
        declared_type: the type as declared, possibly empty.
        nullable: False when declared NOT NULL.
        key_position: 1-based place in the primary key, 0 outside it.
    """

    name: str
    declared_type: str
    nullable: bool = True
    key_position: int = 0

    @property
    def type_name(self) -> str:
        """The type as M-Schema writes it: upper case, without length; `NULL` if undeclared."""
        return type_name(self.declared_type)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """One foreign key, composite ones with several columns; names as declared."""

    table: str
    columns: tuple[str, ...]
    ref_table: str
    ref_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """One table, its columns in declared order and its foreign keys."""

    name: str
    columns: tuple[Column, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Names of the primary key's columns, in the key's order."""
        return tuple(c.name for c in sorted(self.columns, key=lambda c: c.key_position) if c.key_position)


@dataclass(frozen=True, slots=True)
class DatabaseSchema:
    """All tables of one database, in the order of their creation."""

    db_id: str
    tables: tuple[Table, ...]

    @property
    def foreign_keys(self) -> tuple[ForeignKey, ...]:
        """The foreign keys of all tables, in table order."""
        return tuple(key for table in self.tables for key in table.foreign_keys)


@lru_cache(maxsize=4096)
def type_name(declared_type: str) -> str:
    """SQLAlchemy's name of a declared SQLite type: its own name if it knows it, else that of the affinity."""
    match = re.match(r"[\w ]+", declared_type.strip())
    base = match.group().strip().upper() if match else ""
    if not base:
        return "NULL"
    if base in _TYPE_NAMES:
        return _TYPE_NAMES[base]
    return next((name for part, name in (*_AFFINITIES, *_REAL_AFFINITIES) if part in base), "NUMERIC")


def quote_name(name: str) -> str:
    """`name` as a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def open_for_reading(path: str | Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection for our own queries (never for a model's); text that is not UTF-8 comes with escapes.

    Raises:
        FileNotFoundError: there is no such file.
        sqlite3.DatabaseError: the file is not a SQLite database.
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(f"database file {file} does not exist")
    connection = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
    connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
    try:
        yield connection
    finally:
        connection.close()


def read_schema(path: str | Path, db_id: str | None = None) -> DatabaseSchema:
    """The schema of a database file; `db_id` defaults to the file's name without its suffix.

    Raises:
        FileNotFoundError: there is no such file.
        sqlite3.DatabaseError: the file is not a SQLite database.
    """
    with open_for_reading(path) as connection:
        return schema_of(connection, db_id or Path(path).stem)


def schema_of(connection: sqlite3.Connection, db_id: str) -> DatabaseSchema:
    """The schema behind an open connection: ordinary tables only, no views, no internal tables."""
    listed = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY rowid"
    ).fetchall()
    tables = tuple(_read_table(connection, name) for (name,) in listed)
    return DatabaseSchema(db_id, _with_referenced_keys(tables))


def distinct_values(connection: sqlite3.Connection, table: str, column: str, limit: int) -> list[Any]:
    """The first `limit` distinct values of a column in storage order, NULL among them.

    `NOT INDEXED` fixes the order: without it SQLite answers from whatever index covers the column.
    """
    name = quote_name(column)
    query = f"SELECT DISTINCT {name} FROM {quote_name(table)} NOT INDEXED LIMIT {int(limit)}"
    return [value for (value,) in connection.execute(query)]


def _read_table(connection: sqlite3.Connection, name: str) -> Table:
    """One table by PRAGMA; hidden columns of virtual tables are left out."""
    rows = connection.execute(f"PRAGMA table_xinfo({quote_name(name)})").fetchall()
    columns = tuple(Column(r[1], r[2] or "", not r[3], r[5]) for r in rows if r[6] != 1)
    return Table(name, columns, _read_foreign_keys(connection, name))


def _read_foreign_keys(connection: sqlite3.Connection, table: str) -> tuple[ForeignKey, ...]:
    """The foreign keys of a table.

    The order is that of SQLAlchemy, hence of the reference M-Schema code: first the constraints whose text it can
    read (referenced table in double quotes or bare) as they are written, then the others as the PRAGMA lists them.
    """
    grouped: dict[int, list[tuple]] = {}
    for row in connection.execute(f"PRAGMA foreign_key_list({quote_name(table)})"):
        grouped.setdefault(row[0], []).append(row)
    keys = []
    for number in sorted(grouped):
        parts = sorted(grouped[number], key=lambda row: row[1])
        keys.append(ForeignKey(table, tuple(p[3] for p in parts), parts[0][2], tuple(p[4] or "" for p in parts)))
    if len(keys) < 2:
        return tuple(keys)
    (sql,) = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?", (table,)).fetchone()
    written = _written_foreign_keys(sql or "")
    return tuple(sorted(keys, key=lambda key: written.get(_signature(key.columns, key.ref_table), len(written))))


def _written_foreign_keys(sql: str) -> dict[tuple[str, ...], int]:
    """Signature -> position of each `FOREIGN KEY (…) REFERENCES t (` in a CREATE TABLE text."""
    written: dict[tuple[str, ...], int] = {}
    for match in _FOREIGN_KEY.finditer(sql):
        columns = tuple(quoted or bare for quoted, bare in _WRITTEN_NAME.findall(match.group(1)))
        written.setdefault(_signature(columns, match.group(2) or match.group(3)), len(written))
    return written


def _signature(columns: tuple[str, ...], ref_table: str) -> tuple[str, ...]:
    """What tells one foreign key of a table from another, without regard to case."""
    return (ref_table.lower(), *(column.lower() for column in columns))


def _with_referenced_keys(tables: tuple[Table, ...]) -> tuple[Table, ...]:
    """A foreign key that names no columns refers to the primary key: fill its columns in where they are known."""
    keys = {table.name.lower(): table.primary_key for table in tables}
    filled = []
    for table in tables:
        foreign = tuple(
            ForeignKey(k.table, k.columns, k.ref_table, keys[k.ref_table.lower()])
            if not all(k.ref_columns) and len(keys.get(k.ref_table.lower(), ())) == len(k.columns)
            else k
            for k in table.foreign_keys
        )
        filled.append(Table(table.name, table.columns, foreign))
    return tuple(filled)
