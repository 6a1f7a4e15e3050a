"""The database tools on verl's tool interface: `rollout.multi_turn.tool_config_path=<repository>/…/conf/tools.yaml`.

    - class_name: verl_sql.integration.tools.RunSQL
      config: {type: native, timeout: 10, deadline: 30}

The database of a sample comes from `extra_info.tools_kwargs.<tool>.create_kwargs.db_id`, looked up under the config's
`db_root` or VERL_SQL_DB_ROOT. How each call ended is appended to the trajectory's `extra_fields["tool_log"]`, which the
reward function sees as `extra_info["tool_log"]` and turns into metrics. Written against verl 0.9.1, whose agent loop
hands `agent_data` to `execute`. Importing this module also registers the agent loop `verl_sql_tools`.
"""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar
from uuid import uuid4

from verl.tools.base_tool import BaseTool
from verl.tools.schemas import OpenAIFunctionToolSchema, ToolResponse

from verl_sql.database.catalog import resolve_database
from verl_sql.database.executor import shared_executor
from verl_sql.database.faults import DatabaseNotFound
from verl_sql.integration.tool_loop import log_call
from verl_sql.tools import CallStatus, Toolbox, ToolResult
from verl_sql.tools.desk import ToolLimits
from verl_sql.tools.schemas import SCHEMAS

log = logging.getLogger(__name__)

_LIMITS = tuple(ToolLimits.__dataclass_fields__)


class SQLTool(BaseTool):
    """One tool of `verl_sql.tools` for verl; an instance lives for one call."""

    tool_name: ClassVar[str]

    def __init__(self, config: dict[str, Any], tool_schema: OpenAIFunctionToolSchema | None) -> None:
        """Read the config: `db_root`, `workers` and the fields of `ToolLimits`.

        Raises:
            ValueError: a key is none of ours.
        """
        unknown = set(config) - {"type", "db_root", "workers", *_LIMITS}
        if unknown:
            raise ValueError(f"{self.tool_name}: unknown config {', '.join(sorted(unknown))}")
        self.config = config
        self.tool_schema = tool_schema or OpenAIFunctionToolSchema.model_validate(SCHEMAS[self.tool_name])
        self.name = self.tool_schema.function.name
        limits = ToolLimits(**{key: config[key] for key in _LIMITS if config.get(key) is not None})
        self._box = Toolbox(shared_executor(config.get("workers")), limits)
        self._databases: dict[str, Path | None] = {}

    async def create(self, instance_id: str | None = None, **kwargs: Any) -> tuple[str, ToolResponse]:
        """Find the call's database; one that is not there is said when the call is made."""
        instance = instance_id or uuid4().hex
        given: Mapping[str, Any] = kwargs.get("create_kwargs") or {}
        try:
            self._databases[instance] = resolve_database(given.get("db_id"), self.config.get("db_root"), given)
        except DatabaseNotFound as error:
            log.error("%s: %s", self.name, error)
            self._databases[instance] = None
        return instance, ToolResponse()

    async def execute(
        self, instance_id: str, parameters: dict[str, Any], **kwargs: Any
    ) -> tuple[ToolResponse, None, dict[str, Any]]:
        """Answer the call; never raises, never takes longer than the deadline. It earns no reward of its own."""
        database = self._databases.get(instance_id)
        if database is None:
            result = ToolResult("error: the database of this question cannot be found", CallStatus.FAULT)
        else:
            result = await self._box.call(self.tool_name, parameters, database)
        log_call(kwargs.get("agent_data"), self.name, result)
        return ToolResponse(text=result.text), None, {"status": str(result.status), "seconds": result.seconds}

    async def release(self, instance_id: str, **kwargs: Any) -> None:
        """Forget the call."""
        self._databases.pop(instance_id, None)


class RunSQL(SQLTool):
    """Run a query, see its rows."""

    tool_name = "run_sql"


class SearchLiteral(SQLTool):
    """Find how a value is spelled."""

    tool_name = "search_literal"


class ProfileColumn(SQLTool):
    """See what is in a column."""

    tool_name = "profile_column"


class TableSchema(SQLTool):
    """See a table's columns."""

    tool_name = "table_schema"
