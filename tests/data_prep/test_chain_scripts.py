"""cocte.py and sft.py as a user runs them."""

import sqlite3
import subprocess
import sys
from pathlib import Path

from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import RL_SCHEMA, read_rows, rl_row, write_rows

ROOT = Path(__file__).parents[2]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=ROOT, check=False)


def test_from_questions_through_chains_to_an_sft_set(league_root: Path, tmp_path: Path) -> None:
    golds = ["SELECT COUNT(*) FROM player WHERE age > 25", "SELECT name FROM team"]
    examples = [Example("own", "train", str(i), "league", "Q?", "", gold) for i, gold in enumerate(golds)]
    rows = [rl_row(e, [{"role": "user", "content": "Q?"}], i) for i, e in enumerate(examples)]
    write_rows(tmp_path / "train.parquet", rows, RL_SCHEMA)
    chains = tmp_path / "chains"
    done = run(
        *("-m", "verl_sql.data_prep.cocte", f"sources=[{tmp_path}/train.parquet]", f"db_root={league_root}"),
        *(f"out={chains}", "workers=1"),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("train.parquet: 2 questions; chain 1, single 1")
    done = run("data_prep/sft.py", "kind=chains", f"source={chains}/train.parquet", f"out={tmp_path}/sft.parquet")
    assert done.returncode == 0, done.stderr
    first, second = (row["messages"][-1]["content"] for row in read_rows(tmp_path / "sft.parquet"))
    assert first == (
        "WITH player_with_age_over_25 AS (SELECT id FROM player WHERE age > 25),\n"
        "player_count AS (SELECT COUNT(*) AS player_count FROM player_with_age_over_25)\n"
        "SELECT player_count FROM player_count"
    )
    assert second == golds[1]
    path = league_root / "league" / "league.sqlite"
    assert sqlite3.connect(path).execute(first).fetchall() == sqlite3.connect(path).execute(golds[0]).fetchall()


def test_mistakes_end_in_one_sentence(tmp_path: Path) -> None:
    cases = {
        ("data_prep/cocte.py", f"sources=[{tmp_path}/no.parquet]", f"out={tmp_path}/o"): "cocte: no parquet",
        ("data_prep/cocte.py", f"sources=[{tmp_path}/no.parquet]", f"out={tmp_path}"): "would overwrite",
        ("data_prep/cocte.py", "sources=[x]", "out=o", "settings.llm.rows=some"): "cocte: llm.rows=some",
        (
            "data_prep/sft.py",
            "kind=star",
            f"source={tmp_path}/no.parquet",
            f"out={tmp_path}/o",
        ): "sft: a set of kind star",
        ("data_prep/sft.py", "kind=chains", f"source={tmp_path}/no.parquet", f"out={tmp_path}/o"): "sft: no parquet",
    }
    for command, sentence in cases.items():
        done = run(*command)
        assert done.returncode == 1
        assert sentence in done.stderr
        assert "Traceback" not in done.stderr
