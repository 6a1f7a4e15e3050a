"""search_literal: how is it spelled in the database? BM25 over its text values."""

import asyncio
import sqlite3
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

from verl_sql.database.literals import Literal, asearch, ensure_index, index_path
from verl_sql.database.literals.search import LookupTimeout
from verl_sql.sqltext.quoting import cell_text, neutral
from verl_sql.tools.desk import Desk
from verl_sql.tools.result import CallFailed, CallStatus


async def search_literal(desk: Desk, arguments: Mapping[str, Any]) -> str:
    """The stored values nearest to `text`, a line each: `team.city = 'Roma' (12 rows)`.

    With `table` or `column` only values of that table or column.

    Raises:
        CallFailed: no such table or column, or the look-up ran out of time.
    """
    text = str(arguments["text"])
    table = desk.table(str(arguments["table"])) if arguments.get("table") else None
    column = str(arguments["column"]) if arguments.get("column") else None
    if table is not None and column is not None:
        column = desk.column(table, column).name
    index = await _index(desk.database)
    limits = desk.limits
    try:
        found = await asearch(
            desk.executor, index, text, limits.literals, table.name if table else None, column, limits.timeout
        )
    except LookupTimeout:
        raise CallFailed(CallStatus.TIMEOUT, f"timeout: the search ran longer than {limits.timeout:g} s") from None
    if not found:
        return f"no value like {cell_text(text, limits.cell)}"
    return "\n".join(_line(literal, limits.cell) for literal in found)


def _line(literal: Literal, cell: int) -> str:
    """One literal on one line, as the condition that selects it."""
    rows = f"{literal.rows} row" + ("" if literal.rows == 1 else "s")
    return f"{neutral(literal.table)}.{neutral(literal.column)} = {cell_text(literal.value, cell)} ({rows})"


_building: dict[Path, Future[Path]] = {}
_lock = Lock()
_builders = ThreadPoolExecutor(max_workers=2, thread_name_prefix="literals")


async def _index(database: Path) -> Path:
    """The database's index. Building it goes on when the call that began it has run out of time.

    Raises:
        CallFailed: it cannot be built.
    """
    target = await asyncio.to_thread(index_path, database)
    if target.is_file():
        return target
    with _lock:
        future = _building.get(target)
        if future is None or (future.done() and future.exception()):
            future = _building[target] = _builders.submit(ensure_index, database)
    try:
        return await asyncio.shield(asyncio.wrap_future(future))
    except (OSError, sqlite3.Error) as error:
        raise CallFailed(CallStatus.FAULT, f"error: this database cannot be searched: {neutral(str(error))}") from None
