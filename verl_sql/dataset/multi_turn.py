"""Prompts for agents: a prepared parquet with the columns that verl's agent loops read beside it.

`agent_name` chooses the agent loop of each row; `extra_info.tools_kwargs` creates each tool on the row's database. verl
takes both as they are in the file, nested, so the Arrow schema is fixed here too: one struct a tool, the same in every
row group.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from verl_sql.dataset.parquet import EXTRA_INFO, RL_SCHEMA, missing_columns, read_rows, write_rows
from verl_sql.tools import TOOL_NAMES


def multi_turn_schema(tools: Sequence[str] = TOOL_NAMES) -> pa.Schema:
    """RL_SCHEMA with `agent_name` and, where there are tools, `extra_info.need_tools_kwargs` and `.tools_kwargs`."""
    creation = pa.struct([("create_kwargs", pa.struct([("db_id", pa.string())]))])
    info = [
        *EXTRA_INFO,
        pa.field("need_tools_kwargs", pa.bool_()),
        pa.field("tools_kwargs", pa.struct([(name, creation) for name in tools])),
    ]
    columns = [pa.field("extra_info", pa.struct(info)) if f.name == "extra_info" and tools else f for f in RL_SCHEMA]
    return pa.schema([*columns, pa.field("agent_name", pa.string())])


def write_multi_turn(source: Path, out: Path, agent: str, tools: Sequence[str] = TOOL_NAMES, mark: str = "") -> int:
    """Write `out`: the rows of `source` for the agent loop `agent`, with the tools it may call.

    With a `mark`, data source and split get it behind their names (`bird_no_tools`), so that metrics and reports keep
    the same questions asked in two ways apart.

    Returns:
        The number of rows.

    Raises:
        FileNotFoundError: there is no `source`.
        ValueError: it is no prepared parquet, the agent has no name, or a tool is none of ours.
    """
    if not source.is_file():
        raise FileNotFoundError(f"no parquet {source}; prepare one with data_prep first")
    if missing := missing_columns(source, RL_SCHEMA):
        raise ValueError(f"{source} is no prepared parquet: {', '.join(missing)} missing or of another type")
    if not agent:
        raise ValueError("give the agent loop's name: agent=…")
    if unknown := sorted(set(tools) - set(TOOL_NAMES)):
        raise ValueError(f"no tool {', '.join(unknown)}; there are {', '.join(TOOL_NAMES)}")
    return write_rows(out, _rows(source, agent, tools, f"_{mark}" if mark else ""), multi_turn_schema(tools))


def _rows(source: Path, agent: str, tools: Sequence[str], ending: str) -> Iterator[dict[str, Any]]:
    """The rows with what the agent loop needs."""
    for row in read_rows(source):
        info = {**row["extra_info"], "split": row["extra_info"]["split"] + ending}
        if tools:
            created = {"create_kwargs": {"db_id": info["db_id"]}}
            info |= {"need_tools_kwargs": True, "tools_kwargs": dict.fromkeys(tools, created)}
        yield {**row, "data_source": row["data_source"] + ending, "extra_info": info, "agent_name": agent}
