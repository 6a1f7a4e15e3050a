"""The fixed schemas: every reader of parquet sees the same columns, whatever the data."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from verl_sql.dataset import parquet
from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import RL_SCHEMA, SFT_SCHEMA, missing_columns, read_rows, rl_row, sft_row, write_rows

EXAMPLE = Example("bird", "dev", "7", "d", "Wér?", "e", "SELECT 1", details={"b": [1, None], "a": "é"})
PROMPT = [{"role": "user", "content": "schema\nWér?"}]


def test_rl_row_round_trips(tmp_path: Path) -> None:
    assert write_rows(tmp_path / "a.parquet", [rl_row(EXAMPLE, PROMPT, 3)], RL_SCHEMA) == 1
    (row,) = read_rows(tmp_path / "a.parquet")
    assert row["prompt"] == PROMPT
    assert row["reward_model"] == {"style": "rule", "ground_truth": "SELECT 1"}
    assert row["extra_info"]["index"] == 3
    assert json.loads(row["extra_info"]["details"]) == {"a": "é", "b": [1, None]}
    assert pq.read_schema(tmp_path / "a.parquet").equals(RL_SCHEMA)


def test_sft_row_round_trips(tmp_path: Path) -> None:
    messages = [*PROMPT, {"role": "assistant", "content": "SELECT 1"}]
    write_rows(tmp_path / "a.parquet", [sft_row(EXAMPLE, messages, 0)], SFT_SCHEMA)
    assert next(read_rows(tmp_path / "a.parquet"))["messages"] == messages


def test_an_empty_file_has_the_columns(tmp_path: Path) -> None:
    assert write_rows(tmp_path / "a.parquet", [], RL_SCHEMA) == 0
    assert missing_columns(tmp_path / "a.parquet", RL_SCHEMA) == []


def test_row_groups_and_equal_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP", 10)
    for name in ("a", "b"):
        write_rows(tmp_path / name, (rl_row(EXAMPLE, PROMPT, i) for i in range(25)), RL_SCHEMA)
    assert pq.ParquetFile(tmp_path / "a").num_row_groups == 3
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(pa.ArrowTypeError):
        write_rows(tmp_path / "a.parquet", [{"data_source": 3}], RL_SCHEMA)
    assert not (tmp_path / "a.parquet").exists()


def test_missing_columns_are_named(tmp_path: Path) -> None:
    table = pa.table({"data_source": ["x"], "prompt": ["a string"], "ability": ["y"]})
    pq.write_table(table, tmp_path / "a.parquet")
    assert missing_columns(tmp_path / "a.parquet", RL_SCHEMA) == ["prompt", "reward_model", "extra_info"]
