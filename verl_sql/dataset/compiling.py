"""Does a gold compile? Asked of an empty database where the real one is not at hand. Nothing is run."""

import sqlite3
from collections.abc import Iterable, Mapping
from functools import lru_cache

from verl_sql.database.introspect import DatabaseSchema
from verl_sql.dataset.example import Example
from verl_sql.dataset.reasons import Finding, Reason
from verl_sql.schema.ddl import render_ddl

_STEPS = 100_000
_SCRIPT_CALLS = 50


class CompileCheck:
    """Findings about golds without a database: they do not compile, or there is nothing to compile them against.

    Args:
        schemas: db_id -> schema, from a `tables.json`.
    """

    def __init__(self, schemas: Mapping[str, DatabaseSchema]) -> None:
        """Empty databases are made when they are needed, and some of them kept."""
        self.schemas = schemas
        self._opened = lru_cache(maxsize=128)(self._open)
        self._from_script = lru_cache(maxsize=128)(script_database)

    def findings(self, example: Example) -> list[Finding]:
        """A finding when the gold does not compile, or when neither the schemas nor the example tell of its tables."""
        if example.db_id in self.schemas:
            connection: sqlite3.Connection | str = self._opened(example.db_id)
        elif example.schema_text:
            connection = self._from_script(example.schema_text)
        else:
            return [Finding(Reason.NO_DATABASE)]
        if isinstance(connection, str):
            return [Finding(Reason.GOLD_UNCOMPILABLE, f"its schema: {connection}")]
        message = compile_error(connection, example.gold_sql)
        return [Finding(Reason.GOLD_UNCOMPILABLE, message)] if message else []

    def _open(self, db_id: str) -> sqlite3.Connection:
        """The empty database of one schema."""
        return empty_database(self.schemas[db_id])


def empty_database(schema: DatabaseSchema) -> sqlite3.Connection:
    """An in-memory database with the tables of `schema` and no rows; without those that SQLite keeps for itself.

    Raises:
        sqlite3.OperationalError: a table has two columns of one name.
    """
    tables = (t for t in schema.tables if t.columns and not t.name.lower().startswith("sqlite_"))
    connection = sqlite3.connect(":memory:")
    connection.executescript(render_ddl(DatabaseSchema(schema.db_id, tuple(tables))))
    return connection


def script_database(script: str) -> sqlite3.Connection | str:
    """An in-memory database made by CREATE TABLE statements of others, or why SQLite refuses them.

    The statements can reach no file, and are stopped when they compute for long.
    """
    connection = sqlite3.connect(":memory:")
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.set_authorizer(_authorize)
    calls = iter(range(_SCRIPT_CALLS))
    connection.set_progress_handler(lambda: next(calls, None) is None, _STEPS)
    try:
        connection.executescript(script)
    except (sqlite3.Error, sqlite3.Warning) as error:
        return str(error)
    connection.set_progress_handler(None, 0)
    return connection


def compile_error(connection: sqlite3.Connection, sql: str) -> str:
    """Why SQLite cannot compile `sql` against a database, without running it; nothing when it can."""
    try:
        connection.execute(f"EXPLAIN {sql}")
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        return str(error)
    return ""


def compile_errors(schemas: Mapping[str, DatabaseSchema], golds: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Which golds do not compile against empty databases.

    Args:
        schemas: db_id -> schema.
        golds: (id, db_id, SQL).

    Returns:
        id -> SQLite's message, or that there is no such schema.
    """
    check = CompileCheck(schemas)
    found = {}
    for number, db_id, sql in golds:
        for finding in check.findings(Example("", "", number, db_id, "", "", sql)):
            found[number] = finding.detail or f"no schema of {db_id!r}"
    return found


def _authorize(action: int, *_: str | None) -> int:
    """Refuse what reaches outside the database in memory."""
    return sqlite3.SQLITE_DENY if action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_PRAGMA) else sqlite3.SQLITE_OK
