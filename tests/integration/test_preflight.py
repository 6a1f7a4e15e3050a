"""A run's inputs are refused in one sentence before anything is started."""

import sqlite3
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from verl_sql.database.execution import Status
from verl_sql.database.gold_cache import GoldResult, content_digest, gold_line
from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import RL_SCHEMA, rl_row, write_rows
from verl_sql.integration.preflight import main


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A database root with the database `shop`."""
    (tmp_path / "db" / "shop").mkdir(parents=True)
    with sqlite3.connect(tmp_path / "db" / "shop" / "shop.sqlite") as connection:
        connection.execute("CREATE TABLE item (id INTEGER)")
    return tmp_path / "db"


def parquet(path: Path, db_id: str = "shop") -> Path:
    """A parquet with one row about `db_id`."""
    example = Example(
        source="own", split="train", question_id="0", db_id=db_id, question="How many?", evidence="",
        gold_sql="SELECT count(*) FROM item", gold_chain="", difficulty="", details={},
    )  # fmt: skip
    write_rows(path, [rl_row(example, [{"role": "user", "content": "How many?"}], 0)], RL_SCHEMA)
    return path


def test_good_inputs_pass(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = parquet(tmp_path / "train.parquet")
    assert main(["--train", str(train), "--db-root", str(root)]) == 0
    assert "1 databases found" in capsys.readouterr().out


def missing_file(tmp: Path, root: Path) -> list[str]:
    return ["--train", str(tmp / "none.parquet")]


def missing_column(tmp: Path, root: Path) -> list[str]:
    table = pq.read_table(parquet(tmp / "whole.parquet")).drop_columns(["reward_model"])
    pq.write_table(table, tmp / "cut.parquet")
    return ["--train", str(tmp / "cut.parquet")]


def missing_root(tmp: Path, root: Path) -> list[str]:
    return ["--train", str(parquet(tmp / "t.parquet")), "--db-root", str(tmp / "nowhere")]


def missing_database(tmp: Path, root: Path) -> list[str]:
    return ["--train", str(parquet(tmp / "t.parquet", "zoo")), "--db-root", str(root)]


def missing_model(tmp: Path, root: Path) -> list[str]:
    return ["--model", str(tmp / "model")]


def no_model(tmp: Path, root: Path) -> list[str]:
    (tmp / "model").mkdir()
    return ["--model", str(tmp / "model")]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (missing_file, "there is no parquet"),
        (missing_column, "lacks the column 'reward_model'"),
        (missing_root, "is not a folder"),
        (missing_database, "'zoo' not found"),
        (missing_model, "there is no model folder"),
        (no_model, "has no config.json"),
    ],
)
def test_one_sentence_for_each_fault(
    arguments, said: str, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments(tmp_path, root)) == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.count("\n") == 1


def test_golds_known_to_fail_are_told_by_id(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train, content = parquet(tmp_path / "train.parquet"), content_digest(root / "shop" / "shop.sqlite")
    failed = GoldResult(Status.ERROR, message="no such column")
    (tmp_path / "golds.jsonl").write_text(gold_line("shop", content, "SELECT count(*) FROM item", failed))
    command = ["--train", str(train), "--db-root", str(root), "--gold-cache", str(tmp_path / "golds.jsonl")]
    assert main(command) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[1:] == [
        "preflight: 1 golds are known to fail, every completion of theirs gets 0: train/0",
        "preflight: 0 golds are known to return nothing",
    ]
    assert main([*command[:-1], str(tmp_path / "none.jsonl")]) == 2
    assert "there is no file of gold results" in capsys.readouterr().err
