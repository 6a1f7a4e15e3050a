"""The cold start's SFT set."""

from pathlib import Path

import pytest

from verl_sql.dataset.cold_start import write_cold_start
from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import RL_SCHEMA, SFT_SCHEMA, missing_columns, read_rows, rl_row, write_rows


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """200 rows: all but the last have a chain, the even ones know a flawed one."""
    rows = []
    for number in range(200):
        details = {"cocte_flawed": f"flawed {number}"} if number % 2 == 0 else {}
        chain = f"chain {number}" if number < 199 else ""
        example = Example(
            source="own", split="train", question_id=str(number), db_id="shop", question=f"q{number}", evidence="",
            gold_sql=f"sql {number}", gold_chain=chain, difficulty="", details=details,
        )  # fmt: skip
        rows.append(rl_row(example, [{"role": "user", "content": f"q{number}"}], number))
    write_rows(tmp_path / "rl.parquet", rows, RL_SCHEMA)
    return tmp_path / "rl.parquet"


def answers(path: Path) -> list[str]:
    """The assistant's turns."""
    return [row["messages"][-1]["content"] for row in read_rows(path)]


def test_gold_chains_by_default(source: Path, tmp_path: Path) -> None:
    counts = write_cold_start(source, tmp_path / "sft.parquet")
    assert (counts.written, counts.flawed, counts.without) == (199, 0, 1)
    assert answers(tmp_path / "sft.parquet") == [f"chain {n}" for n in range(199)]
    assert missing_columns(tmp_path / "sft.parquet", SFT_SCHEMA) == []


def test_share_of_flawed_chains(source: Path, tmp_path: Path) -> None:
    counts = write_cold_start(source, tmp_path / "a.parquet", flawed_share=0.6, seed=1)
    assert 45 <= counts.flawed <= 75  # 100 know a flawed chain
    write_cold_start(source, tmp_path / "b.parquet", flawed_share=0.6, seed=1)
    assert answers(tmp_path / "a.parquet") == answers(tmp_path / "b.parquet")
    assert sum(a.startswith("flawed") for a in answers(tmp_path / "a.parquet")) == counts.flawed


def test_gold_sql_where_there_is_no_chain(source: Path, tmp_path: Path) -> None:
    counts = write_cold_start(source, tmp_path / "sft.parquet", or_sql=True)
    assert (counts.written, counts.without) == (200, 0)
    assert answers(tmp_path / "sft.parquet")[-1] == "sql 199"


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_a_share_is_a_probability(source: Path, tmp_path: Path, share: float) -> None:
    with pytest.raises(ValueError, match="not between 0 and 1"):
        write_cold_start(source, tmp_path / "sft.parquet", share)


def test_a_file_without_chains_is_refused(source: Path, tmp_path: Path) -> None:
    bare = [dict(row, extra_info=dict(row["extra_info"], gold_chain="")) for row in read_rows(source)]
    write_rows(tmp_path / "bare.parquet", bare, RL_SCHEMA)
    with pytest.raises(ValueError, match="no row of"):
        write_cold_start(tmp_path / "bare.parquet", tmp_path / "sft.parquet")
    assert not (tmp_path / "sft.parquet").exists()


def test_a_papers_answer_format(source: Path, tmp_path: Path) -> None:
    write_cold_start(source, tmp_path / "sft.parquet", flawed_share=1.0, style="think")
    assert answers(tmp_path / "sft.parquet")[0] == "<think>One query is enough.</think>\n<answer>flawed 0</answer>"
    with pytest.raises(ValueError, match="prose"):
        write_cold_start(source, tmp_path / "sft.parquet", style="prose")
