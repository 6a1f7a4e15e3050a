"""`verl-sql audit`: sound data passes, each fault is named, and the exit status tells."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from verl_sql.cli import build_app
from verl_sql.database.execution import Status
from verl_sql.database.gold_cache import GoldResult, content_digest, gold_line
from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import RL_SCHEMA, rl_row, write_rows

PROMPT = [{"role": "user", "content": "schema\nHow many?"}]
GOOD = Example("mine", "train", "1", "shop", "How many?", "", "SELECT count(*) FROM shop WHERE name <> 'it''s'")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    file = tmp_path / "db" / "shop.sqlite"
    file.parent.mkdir()
    sqlite3.connect(file).executescript(
        "CREATE TABLE shop (id INT, name TEXT); INSERT INTO shop VALUES (1, 'a'), (2, 'b')"
    )
    return tmp_path


def audit(root: Path, examples: Sequence[Example], *arguments: str, prompt: list = PROMPT) -> tuple[int, str]:
    write_rows(root / "data.parquet", (rl_row(e, prompt, i) for i, e in enumerate(examples)), RL_SCHEMA)
    command = ["audit", str(root / "data.parquet"), "--db-root", str(root / "db"), *arguments]
    result = CliRunner().invoke(build_app(), command)
    return result.exit_code, result.output


def test_sound_golds_score_full_marks_everywhere(root: Path) -> None:
    golds = [
        "SELECT name FROM shop ORDER BY id DESC",
        "WITH a AS (SELECT * FROM shop) SELECT id FROM a -- all",
        'SELECT T1.name FROM shop AS T1 JOIN shop AS T2 ON T1.id = T2.id WHERE T2.name = "a"',
    ]
    examples = [GOOD, *(replace(GOOD, question_id=f"g{i}", gold_sql=gold) for i, gold in enumerate(golds))]
    assert audit(root, examples) == (0, "training may start\n")


def test_what_stops_training(root: Path) -> None:
    examples = [
        replace(GOOD, question_id="e", gold_sql="SELECT nam FROM shop"),
        replace(GOOD, question_id="d", db_id="gone"),
        replace(GOOD, question_id="n", gold_sql=" "),
        replace(GOOD, question_id="f", gold_sql="DELETE FROM shop"),
    ]
    code, output = audit(root, examples)
    assert code == 1
    lines = output.splitlines()
    assert [line.split(" (")[0] for line in lines] == [
        "STOP  gold error: 1: e",
        "STOP  gold forbidden: 1: f",
        "STOP  no database: 1: d",
        "STOP  no gold: 1: n",
        "do not train on it",
    ]


def test_what_is_only_told(root: Path) -> None:
    empty = "SELECT name FROM shop WHERE name = 'nobody at all'"
    examples = [
        GOOD,
        replace(GOOD, question_id="2"),
        replace(GOOD, question_id="3", gold_sql=empty, details={"flags": ["gold_empty"]}),
        replace(GOOD, question_id="4", question="Other?", gold_chain="WITH a AS (SELECT 1) SELECT * FROM a"),
    ]
    code, output = audit(root, examples, "--report", str(root / "problems.jsonl"))
    assert code == 0
    assert output.splitlines() == [
        "note  chain does not give the gold's result: 1: 4 (another result)",
        "note  flagged gold_empty: 1: 3",
        "note  gold returns nothing: 1: 3",
        "note  repeated question: 1: 2 (same as 1)",
        "training may start",
    ]
    problems = [json.loads(line) for line in (root / "problems.jsonl").read_text().splitlines()]
    assert {problem["question_id"] for problem in problems} == {"2", "3", "4"}


def test_a_prompt_that_holds_its_gold(root: Path) -> None:
    prompt = [{"role": "user", "content": f"How many? {GOOD.gold_sql}"}]
    assert "prompt holds its gold" in audit(root, [GOOD], "--rewards", "execution", prompt=prompt)[1]


def test_missing_columns_and_unknown_rewards(root: Path) -> None:
    pq.write_table(pa.table({"data_source": ["x"]}), root / "other.parquet")
    result = CliRunner().invoke(build_app(), ["audit", str(root / "other.parquet")])
    assert result.exit_code == 1
    assert "missing or of another type: prompt, ability, reward_model, extra_info" in result.output
    assert audit(root, [GOOD], "--rewards", "none")[0] == 2


def test_golds_known_to_fail_are_not_run(root: Path) -> None:
    content = content_digest(root / "db" / "shop.sqlite")
    timed_out = GoldResult(Status.TIMEOUT, message="ran past its deadline of 60 s", allowed=60.0)
    (root / "golds.jsonl").write_text(gold_line("shop", content, GOOD.gold_sql, timed_out), encoding="utf-8")
    assert audit(root, [GOOD], "--gold-cache", str(root / "golds.jsonl")) == (
        1,
        "STOP  gold timeout: 1: 1 (ran past its deadline of 60 s)\ndo not train on it\n",
    )
    assert audit(root, [GOOD], "--gold-cache", str(root / "none.jsonl"))[0] == 2
