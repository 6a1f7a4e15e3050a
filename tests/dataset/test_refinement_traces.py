"""Warm-start conversations of Progress-SQL: mistake, feedback as in the agent loop, right SQL."""

from pathlib import Path

import pytest

from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import RL_SCHEMA, SFT_SCHEMA, missing_columns, read_rows, rl_row, write_rows
from verl_sql.dataset.refinement_traces import write_refinement_traces

CHAIN = "WITH a AS (SELECT name FROM team WHERE city = 'Rome') SELECT name FROM a"
FLAWED = "WITH a AS (SELECT name FROM team WHERE city = 'Rome') SELECT name FROM team"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """300 rows: a third knows a flawed chain, a third has a chain, a third the gold query alone."""
    rows = []
    for number in range(300):
        example = Example(
            source="own", split="train", question_id=str(number), db_id="league", question=f"q{number}", evidence="",
            gold_sql="SELECT name FROM team WHERE city = 'Rome'", gold_chain=CHAIN if number % 3 < 2 else "",
            difficulty="", details={"cocte_flawed": FLAWED} if number % 3 == 0 else {},
        )  # fmt: skip
        rows.append(rl_row(example, [{"role": "user", "content": f"q{number}"}], number))
    write_rows(tmp_path / "rl.parquet", rows, RL_SCHEMA)
    return tmp_path / "rl.parquet"


def conversations(path: Path) -> list[list[str]]:
    assert missing_columns(path, SFT_SCHEMA) == []
    found = list(read_rows(path))
    assert all([m["role"] for m in row["messages"]][::2] == ["user"] * (len(row["messages"]) // 2) for row in found)
    return [[message["content"] for message in row["messages"][1:]] for row in found]


def test_conversations(source: Path, tmp_path: Path, league_root: Path) -> None:
    counts = write_refinement_traces(source, tmp_path / "a.parquet", league_root, 0.6, 0.3, seed=1, workers=1)
    found = conversations(tmp_path / "a.parquet")
    assert counts.written == len(found) == 300
    assert all(turns[-1] == CHAIN for turns in found[0::3] + found[1::3])
    flawed = [turns for turns in found if turns[0] == FLAWED]
    assert 45 <= len(flawed) == counts.flawed <= 75
    told = "<tool_response>\nSQL_diagnosis:\n- FROM_tables: one_table_wrong\n</tool_response>"
    assert all(turns == [FLAWED, told, CHAIN] for turns in flawed)
    failing = [turns for turns in found if len(turns) == 3 and turns[0] != FLAWED]
    assert 40 <= len(failing) == counts.failing <= 110
    kinds = {turns[1].split()[1] for turns in failing}
    assert kinds == {"SQL_diagnosis:", "SQL_result:"}
    assert all("does_not_run" in turns[1] or "error: no such" in turns[1] for turns in failing)
    assert {len(turns) for turns in found} == {1, 3}


def test_the_same_again_and_without_mistakes(source: Path, tmp_path: Path, league_root: Path) -> None:
    for name in ("a", "b"):
        write_refinement_traces(source, tmp_path / f"{name}.parquet", league_root, seed=2, workers=1)
    assert conversations(tmp_path / "a.parquet") == conversations(tmp_path / "b.parquet")
    counts = write_refinement_traces(source, tmp_path / "c.parquet", league_root, 0, 0)
    assert (counts.flawed, counts.failing) == (0, 0)
    assert {len(turns) for turns in conversations(tmp_path / "c.parquet")} == {1}


def test_what_is_refused(source: Path, tmp_path: Path, league_root: Path) -> None:
    with pytest.raises(ValueError, match="failing_share=2"):
        write_refinement_traces(source, tmp_path / "a.parquet", league_root, 0.5, 2)
    with pytest.raises(FileNotFoundError, match="no parquet"):
        write_refinement_traces(tmp_path / "none", tmp_path / "a.parquet", league_root)
