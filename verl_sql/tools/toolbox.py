"""Answer tool calls: by name, on a database, before a deadline. Nothing a policy asks for makes it raise."""

import asyncio
import json
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from verl_sql.database.executor import Executor, shared_executor
from verl_sql.database.faults import DatabaseNotFound, DatabaseUnusable, ExecutorError
from verl_sql.sqltext.quoting import line_text, neutral
from verl_sql.tools.desk import Desk, ToolLimits
from verl_sql.tools.profile_column import profile_column
from verl_sql.tools.result import CallFailed, CallStatus, ToolResult
from verl_sql.tools.run_sql import run_sql
from verl_sql.tools.schemas import SCHEMAS
from verl_sql.tools.search_literal import search_literal
from verl_sql.tools.table_schema import table_schema

Tool = Callable[[Desk, Mapping[str, Any]], Awaitable[str]]

_TOOLS: dict[str, Tool] = {
    "run_sql": run_sql,
    "search_literal": search_literal,
    "profile_column": profile_column,
    "table_schema": table_schema,
}
TOOL_NAMES = tuple(_TOOLS)


class Toolbox:
    """The tools, on any database.

    Args:
        executor: runs every query; None takes the process's shared one.
        limits: what a call may use.
        names: the tools there are.
    """

    def __init__(
        self,
        executor: Executor | None = None,
        limits: ToolLimits | None = None,
        names: tuple[str, ...] = TOOL_NAMES,
    ) -> None:
        """Nothing runs yet."""
        self._executor = executor
        self.limits = limits or ToolLimits()
        self.names = names

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """The tools' OpenAI function schemas."""
        return [SCHEMAS[name] for name in self.names]

    async def call(self, name: str, arguments: Any, database: Path) -> ToolResult:
        """Answer one call.

        Args:
            name: a tool's name.
            arguments: what the policy gave, by name; anything else is told off.
            database: SQLite file.
        """
        began = time.monotonic()
        try:
            async with asyncio.timeout(self.limits.deadline):
                text, status = await self._answer(name, arguments, database), CallStatus.OK
        except TimeoutError:
            text, status = f"timeout: no answer within {self.limits.deadline:g} s", CallStatus.TIMEOUT
        except CallFailed as failed:
            text, status = failed.text, failed.status
        except (DatabaseNotFound, DatabaseUnusable, ExecutorError, OSError, sqlite3.Error) as error:
            text, status = f"error: the database cannot be read: {line_text(str(error))}", CallStatus.FAULT
        return ToolResult(text, status, time.monotonic() - began)

    async def _answer(self, name: str, arguments: Any, database: Path) -> str:
        """What the tool says.

        Raises:
            CallFailed: the call cannot be answered.
        """
        if name not in self.names:
            text = f"error: there is no tool {neutral(str(name)[:80])}. There are: {', '.join(self.names)}"
            raise CallFailed(CallStatus.UNKNOWN_TOOL, text)
        executor = self._executor or shared_executor()
        return await _TOOLS[name](Desk(database, executor, self.limits), checked(name, arguments))


def checked(name: str, arguments: Any) -> dict[str, str]:
    """The arguments as the tool takes them.

    Raises:
        CallFailed: they are no object, one is missing, unknown or no text.
    """
    parameters = SCHEMAS[name]["function"]["parameters"]
    known, required = parameters["properties"], parameters["required"]
    if not isinstance(arguments, Mapping):
        raise _told(name, "its arguments must be a JSON object")
    given = {str(key): value for key, value in arguments.items() if value is not None}
    for key, value in given.items():
        if key not in known:
            raise _told(name, f"there is no argument {neutral(key[:80])}")
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise _told(name, f"{key} must be a text")
    for key in required:
        if not str(given.get(key, "")).strip():
            raise _told(name, f"{key} is missing")
    return {key: str(value) for key, value in given.items()}


def _told(name: str, what: str) -> CallFailed:
    """What is wrong with the arguments, and an example of right ones."""
    parameters = SCHEMAS[name]["function"]["parameters"]
    example = dict.fromkeys(parameters["required"] or parameters["properties"], "…")
    call = json.dumps({"name": name, "arguments": example}, ensure_ascii=False)
    return CallFailed(CallStatus.BAD_ARGUMENTS, f"error: {what}. Call it so: {call}")
