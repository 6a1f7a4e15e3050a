"""What one call works with: the database, its schema, the executor with the call's limits."""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from rapidfuzz import process

from verl_sql.database.execution import Execution
from verl_sql.database.executor import Executor
from verl_sql.database.introspect import Column, DatabaseSchema, Table, read_schema
from verl_sql.sqltext.quoting import neutral
from verl_sql.tools.result import CALL_STATUS, CallFailed, CallStatus

CLOSE = 60
"""How alike a name must be (rapidfuzz, 0 to 100) to be suggested."""


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """What a call may use.

    Attributes:
        timeout: seconds one query may run.
        deadline: seconds the whole call may take, waiting for a free worker included.
        rows: rows that are shown.
        cell: characters of a cell that are shown.
        literals: literals that a search gives.
        common: common values that a profile shows.
    """

    timeout: float = 10.0
    deadline: float = 30.0
    rows: int = 20
    cell: int = 80
    literals: int = 8
    common: int = 5


@dataclass(frozen=True, slots=True)
class Desk:
    """One database at hand, for one call."""

    database: Path
    executor: Executor
    limits: ToolLimits

    @property
    def schema(self) -> DatabaseSchema:
        """The database's schema, read once for each state of the file."""
        status = os.stat(self.database)
        return _schema(self.database, status.st_mtime_ns, status.st_size)

    async def run(self, sql: str, keep_rows: int) -> Execution:
        """Run a query under the call's limits."""
        return await self.executor.aexecute(self.database, sql, timeout=self.limits.timeout, keep_rows=keep_rows)

    async def rows(self, sql: str, keep_rows: int) -> tuple[tuple[Any, ...], ...]:
        """The rows of a query of ours.

        Raises:
            CallFailed: it did not run to its end.
        """
        execution = await self.run(sql, keep_rows)
        if not execution.ok:
            raise CallFailed(CALL_STATUS[execution.status], f"{execution.status}: {neutral(execution.message)}")
        return execution.rows or ()

    def table(self, name: str) -> Table:
        """The table of that name, whatever its case.

        Raises:
            CallFailed: there is none; the text names those there are.
        """
        schema = self.schema
        wanted = bare(name)
        for table in schema.tables:
            if table.name.lower() == wanted.lower():
                return table
        names = [table.name for table in schema.tables]
        raise CallFailed(CallStatus.BAD_ARGUMENTS, f"error: no table {neutral(wanted)}. {suggestion(wanted, names)}")

    def column(self, table: Table, name: str) -> Column:
        """The column of that name, whatever its case.

        Raises:
            CallFailed: there is none; the text names those there are.
        """
        wanted = bare(name)
        for column in table.columns:
            if column.name.lower() == wanted.lower():
                return column
        names = [column.name for column in table.columns]
        text = f"error: no column {neutral(wanted)} in {neutral(table.name)}. {suggestion(wanted, names)}"
        raise CallFailed(CallStatus.BAD_ARGUMENTS, text)


def bare(name: str) -> str:
    """A name without the quotes or brackets that SQL would have around it."""
    text = name.strip()
    pairs = {'"': '"', "`": "`", "[": "]", "'": "'"}
    quoted = len(text) > 1 and pairs.get(text[0]) == text[-1]
    return text[1:-1] if quoted else text


def listed(names: list[str], most: int = 40) -> str:
    """Names on one line, the rest counted."""
    shown = ", ".join(neutral(name) for name in names[:most])
    return shown + (f", … {len(names) - most} more" if len(names) > most else "")


def suggestion(name: str, names: list[str]) -> str:
    """What may have been meant, and what there is."""
    close = process.extract(name.lower(), {n: n.lower() for n in names}, score_cutoff=CLOSE, limit=2)
    meant = f"Did you mean {' or '.join(neutral(key) for _, _, key in close)}? " if close else ""
    return f"{meant}There are: {listed(names)}"


@lru_cache(maxsize=256)
def _schema(database: Path, changed: int, size: int) -> DatabaseSchema:
    """The schema of a file in one state."""
    return read_schema(database)
