"""The parquet files that verl reads: two fixed Arrow schemas and a writer that streams.

The schemas never depend on the data, so that row groups and files agree; whatever has no fixed shape is one JSON
string, `extra_info.details`. No path of a database is stored: `extra_info.db_id` is looked up under a root at run time.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from verl_sql.dataset.example import Example

Message = dict[str, str]

_MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
EXTRA_INFO = pa.struct(
    [
        ("index", pa.int64()),
        ("split", pa.string()),
        ("db_id", pa.string()),
        ("question_id", pa.string()),
        ("question", pa.string()),
        ("evidence", pa.string()),
        ("gold_chain", pa.string()),
        ("difficulty", pa.string()),
        ("details", pa.string()),
    ]
)
RL_SCHEMA = pa.schema(
    [
        ("data_source", pa.string()),
        ("prompt", _MESSAGES),
        ("ability", pa.string()),
        ("reward_model", pa.struct([("style", pa.string()), ("ground_truth", pa.string())])),
        ("extra_info", EXTRA_INFO),
    ]
)
SFT_SCHEMA = pa.schema([("messages", _MESSAGES), ("extra_info", EXTRA_INFO)])
ROW_GROUP = 1024


def rl_row(example: Example, prompt: Sequence[Message], index: int) -> dict[str, Any]:
    """The RL_SCHEMA row of one example; `index` is its position in the file."""
    return {
        "data_source": example.source,
        "prompt": list(prompt),
        "ability": example.ability,
        "reward_model": {"style": "rule", "ground_truth": example.gold_sql},
        "extra_info": extra_info(example, index),
    }


def sft_row(example: Example, messages: Sequence[Message], index: int) -> dict[str, Any]:
    """The SFT_SCHEMA row of one example: the prompt's messages and the assistant's."""
    return {"messages": list(messages), "extra_info": extra_info(example, index)}


def extra_info(example: Example, index: int) -> dict[str, Any]:
    """What travels with a sample to the reward function, in EXTRA_INFO's shape."""
    return {
        "index": index,
        "split": example.split,
        "db_id": example.db_id,
        "question_id": example.question_id,
        "question": example.question,
        "evidence": example.evidence,
        "gold_chain": example.gold_chain,
        "difficulty": example.difficulty,
        "details": json.dumps(example.details, ensure_ascii=False, sort_keys=True),
    }


def write_rows(path: str | Path, rows: Iterable[Mapping[str, Any]], schema: pa.Schema) -> int:
    """Write `rows` to a parquet file, a row group at a time; the file appears only when it is whole.

    Returns:
        The number of rows.

    Raises:
        pa.ArrowInvalid, pa.ArrowTypeError: a row does not fit the schema.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.partial")
    count = 0
    with pq.ParquetWriter(partial, schema, compression="zstd") as writer:
        for group in _groups(rows, ROW_GROUP):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
            count += len(group)
    os.replace(partial, target)
    return count


def read_rows(path: str | Path) -> Iterator[dict[str, Any]]:
    """The rows of a parquet file, one row group in memory at a time."""
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        yield from file.read_row_group(group).to_pylist()


def missing_columns(path: str | Path, schema: pa.Schema) -> list[str]:
    """Names of `schema`'s columns that a file lacks or has in another type; more fields in a struct are fine."""
    found = pq.read_schema(path)
    return [f.name for f in schema if f.name not in found.names or not _holds(found.field(f.name).type, f.type)]


def _holds(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Whether values of a type can be read as another: the same, or a struct that has all its fields."""
    if pa.types.is_struct(found) and pa.types.is_struct(wanted):
        return all(found.get_field_index(f.name) >= 0 and _holds(found.field(f.name).type, f.type) for f in wanted)
    return found.equals(wanted)


def _groups(rows: Iterable[Mapping[str, Any]], size: int) -> Iterator[list[Mapping[str, Any]]]:
    """Lists of at most `size` rows."""
    group: list[Mapping[str, Any]] = []
    for row in rows:
        group.append(row)
        if len(group) == size:
            yield group
            group = []
    if group:
        yield group
