"""table_schema: the M-Schema block of one table, and the foreign keys that touch it."""

import asyncio
import sqlite3
from collections.abc import Mapping
from typing import Any, cast

from verl_sql.database.introspect import DatabaseSchema, Table
from verl_sql.schema.mschema import mschema_blocks, table_block
from verl_sql.schema.render import descriptions_beside
from verl_sql.sqltext.quoting import neutral
from verl_sql.tools.desk import Desk, listed
from verl_sql.tools.result import CALL_STATUS, CallFailed


async def table_schema(desk: Desk, arguments: Mapping[str, Any]) -> str:
    """Columns of `table` with types, meanings and example values, then its foreign keys; without `table` all names.

    Raises:
        CallFailed: no such table, or reading its examples ran out of time.
    """
    if not arguments.get("table"):
        return "tables: " + listed([table.name for table in desk.schema.tables])
    table = desk.table(str(arguments["table"]))
    text = await asyncio.to_thread(_block, desk, table)
    lines = [*text.split("\n"), *_foreign_keys(desk.schema, table)]
    return "\n".join(neutral(line) for line in lines)


def _block(desk: Desk, table: Table) -> str:
    """The M-Schema block."""
    only = DatabaseSchema(desk.schema.db_id, (table,))
    connection = cast(sqlite3.Connection, _GuardedReader(desk))
    return table_block(table, mschema_blocks(only, connection, descriptions_beside(desk.database)))


def _foreign_keys(schema: DatabaseSchema, table: Table) -> list[str]:
    """A line `t1.c1=t2.c2` for each column pair of a key that begins or ends at the table."""
    keys = [key for key in schema.foreign_keys if table.name.lower() in (key.table.lower(), key.ref_table.lower())]
    lines = [
        f"{key.table}.{column}={key.ref_table}.{referenced}"
        for key in keys
        for column, referenced in zip(key.columns, key.ref_columns, strict=False)
    ]
    return list(dict.fromkeys(lines))


class _GuardedReader:
    """What the schema room reads examples through, in place of a connection: the executor with the call's limits."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def execute(self, sql: str) -> tuple[tuple[Any, ...], ...]:
        """The first rows of a query.

        Raises:
            CallFailed: it did not run to its end.
        """
        desk = self._desk
        execution = desk.executor.execute(desk.database, sql, timeout=desk.limits.timeout, keep_rows=desk.limits.rows)
        if not execution.ok:
            raise CallFailed(CALL_STATUS[execution.status], f"{execution.status}: {neutral(execution.message)}")
        return execution.rows or ()
