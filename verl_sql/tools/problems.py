"""What a policy is told about a query that did not run: SQLite's reason, and what could mend it."""

import re
from collections.abc import Iterator

from verl_sql.database.execution import Execution, Status
from verl_sql.database.introspect import DatabaseSchema, Table
from verl_sql.sqltext.quoting import line_text, neutral
from verl_sql.sqltext.scan import TokenKind, significant, unquote
from verl_sql.tools.desk import listed, suggestion

MAX_TABLES = 4
"""Tables whose columns are listed at most."""

_NO_COLUMN = re.compile(r"no such column: (.+)")
_NO_TABLE = re.compile(r"no such table: (.+)")
_AMBIGUOUS = re.compile(r"ambiguous column name: (.+)")


def problem(sql: str, execution: Execution, schema: DatabaseSchema, timeout: float) -> str:
    """One text on what went wrong: `error: no such column: X. team has: id, name, city`."""
    message = line_text(execution.message)
    match execution.status:
        case Status.TIMEOUT:
            return f"timeout: the query ran longer than {timeout:g} s. Filter earlier, or join on keys"
        case Status.FORBIDDEN:
            return f"forbidden: {message}. Only reading is allowed: one SELECT"
        case Status.TOO_LARGE:
            return f"too large: {message}. Aggregate, or add a LIMIT"
    hint = " ".join(_hints(sql, execution.message, schema))
    return f"error: {message}." + (f" {hint}" if hint else "")


def _hints(sql: str, message: str, schema: DatabaseSchema) -> Iterator[str]:
    """Sentences that name what the schema really has."""
    if found := _NO_TABLE.search(message):
        yield suggestion(found.group(1), [table.name for table in schema.tables])
    elif found := _NO_COLUMN.search(message):
        yield from _column_hints(sql, found.group(1), schema)
    elif found := _AMBIGUOUS.search(message):
        name = found.group(1).lower()
        owners = [t.name for t in _used(sql, schema) if any(c.name.lower() == name for c in t.columns)]
        yield f"Say which table: {listed([f'{owner}.{found.group(1)}' for owner in owners])}" if owners else ""


def _column_hints(sql: str, name: str, schema: DatabaseSchema) -> Iterator[str]:
    """Where a column of that name is, and what the tables of the query have."""
    column = name.rpartition(".")[2].lower()
    owners = [table.name for table in schema.tables if any(c.name.lower() == column for c in table.columns)]
    if owners:
        yield f"{neutral(column)} is a column of {listed(owners)}."
    for table in _used(sql, schema)[:MAX_TABLES]:
        yield f"{neutral(table.name)} has: {listed([c.name for c in table.columns])}."


def _used(sql: str, schema: DatabaseSchema) -> list[Table]:
    """The tables whose names stand in the query, in the schema's order."""
    words = {
        unquote(sql[t.start : t.end]).lower() for t in significant(sql) if t.kind in (TokenKind.WORD, TokenKind.QUOTED)
    }
    return [table for table in schema.tables if table.name.lower() in words]
