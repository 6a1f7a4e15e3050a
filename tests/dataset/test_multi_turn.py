"""Prompts for agents: the columns verl's loops read, in verl's own dataset too, and whatever the row group."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from verl_sql.dataset import parquet
from verl_sql.dataset.example import Example
from verl_sql.dataset.multi_turn import multi_turn_schema, write_multi_turn
from verl_sql.dataset.parquet import RL_SCHEMA, missing_columns, read_rows, rl_row, write_rows
from verl_sql.tools import TOOL_NAMES

PROMPT = [{"role": "user", "content": "how many?"}]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    examples = [Example("bird", "train", str(i), f"db{i % 2}", "q", "", "SELECT 1") for i in range(5)]
    write_rows(tmp_path / "train.parquet", (rl_row(e, PROMPT, i) for i, e in enumerate(examples)), RL_SCHEMA)
    return tmp_path / "train.parquet"


def test_each_tool_is_created_on_the_rows_database(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP", 2)
    out = tmp_path / "out.parquet"
    assert write_multi_turn(source, out, "verl_sql_tools") == 5
    assert pq.read_schema(out).equals(multi_turn_schema())
    for before, row in zip(read_rows(source), read_rows(out), strict=True):
        assert row["agent_name"] == "verl_sql_tools"
        created = {"create_kwargs": {"db_id": before["extra_info"]["db_id"]}}
        assert row["extra_info"].pop("tools_kwargs") == dict.fromkeys(TOOL_NAMES, created)
        assert row["extra_info"].pop("need_tools_kwargs") is True
        assert {**row, "agent_name": None} == {**before, "agent_name": None}
    assert missing_columns(out, RL_SCHEMA) == []


def test_some_tools_or_none(source: Path, tmp_path: Path) -> None:
    write_multi_turn(source, tmp_path / "one", "tool_agent", ("run_sql",))
    assert list(next(read_rows(tmp_path / "one"))["extra_info"]["tools_kwargs"]) == ["run_sql"]
    write_multi_turn(source, tmp_path / "none", "refine", ())
    assert "tools_kwargs" not in next(read_rows(tmp_path / "none"))["extra_info"]


def test_a_mark_tells_two_ways_of_asking_apart(source: Path, tmp_path: Path) -> None:
    write_multi_turn(source, tmp_path / "out", "single_turn_agent", mark="no_tools")
    row = next(read_rows(tmp_path / "out"))
    assert (row["data_source"], row["extra_info"]["split"]) == ("bird_no_tools", "train_no_tools")
    assert pq.read_schema(tmp_path / "out").equals(multi_turn_schema())


@pytest.mark.parametrize(
    ("agent", "tools", "sentence"), [("", TOOL_NAMES, "agent=…"), ("a", ("drop",), "no tool drop; there are run_sql")]
)
def test_mistakes_are_said(source: Path, tmp_path: Path, agent: str, tools: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        write_multi_turn(source, tmp_path / "x", agent, tools)
    with pytest.raises(FileNotFoundError):
        write_multi_turn(tmp_path / "none.parquet", tmp_path / "x", "a")


def test_verl_gets_the_tools_arguments_as_a_dict(source: Path, tmp_path: Path) -> None:
    rl_dataset = pytest.importorskip("verl.utils.dataset.rl_dataset")
    from omegaconf import OmegaConf

    from verl_sql.integration.tiny_policy import train_tokenizer

    write_multi_turn(source, tmp_path / "out.parquet", "verl_sql_tools")
    config = OmegaConf.create(
        {"cache_dir": str(tmp_path), "max_prompt_length": 100, "filter_overlong_prompts_workers": 1}
    )
    tokenizer: Any = train_tokenizer(["how many?"], 300)
    row = rl_dataset.RLHFDataset(str(tmp_path / "out.parquet"), tokenizer, config)[3]
    assert row["agent_name"] == "verl_sql_tools"
    assert row["tools_kwargs"]["run_sql"] == {"create_kwargs": {"db_id": "db1"}}
