"""The scripts for tools as a user runs them: the sample of look-ups, prompts for agents, traces of the script."""

import subprocess
import sys
from pathlib import Path

import pytest

from verl_sql.dataset.parquet import read_rows

ROOT = Path(__file__).parents[2]


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, f"data_prep/{script}.py", *arguments], capture_output=True, text=True, cwd=ROOT, check=False
    )


def test_from_the_sample_to_a_warm_start(tmp_path: Path) -> None:
    sizes = "{cold_start: 30, train: 5, test: 5, unseen: 5, variants: 1, test_variants: 1}"
    done = [
        run("sample", f"out={tmp_path}/sample", "questions=lookups", f"lookup_sizes={sizes}"),
        run(
            *("bird", f"source={tmp_path}/sample", f"out={tmp_path}/data", "splits=[cold_start]", "workers=1"),
            *("settings.template=compact_tools", "settings.form=compact", "settings.examples=0"),
        ),
        run("multi_turn", f"source={tmp_path}/data/cold_start.parquet", f"out={tmp_path}/tools.parquet"),
        run(
            *("tool_traces", f"source={tmp_path}/tools.parquet", f"out={tmp_path}/sft.parquet"),
            *(f"db_root={tmp_path}/sample", "habits.sure=0.0", "workers=1"),
        ),
    ]
    assert [d.returncode for d in done] == [0, 0, 0, 0], "\n".join(d.stderr[-500:] for d in done)
    assert "tool_traces: kept 30, calls " in done[-1].stdout
    roles = [message["role"] for row in read_rows(tmp_path / "sft.parquet") for message in row["messages"]]
    assert roles.count("tool") >= 20


@pytest.mark.parametrize(
    ("script", "arguments", "sentence"),
    [
        ("sample", ["out=x", "questions=riddles"], "questions=riddles: there are chains and lookups"),
        ("multi_turn", ["source=/nowhere.parquet", "out=x"], "no parquet /nowhere.parquet"),
        (
            "tool_traces",
            ["source=x", "out=y", "db_root=.", "teacher=nobody"],
            "teacher=nobody: there are script",
        ),
        ("tool_traces", ["source=x", "out=y", "db_root=.", "teacher=model"], "needs endpoint.base_url=…"),
    ],
)
def test_mistakes_are_one_sentence(script: str, arguments: list[str], sentence: str) -> None:
    done = run(script, *arguments)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
