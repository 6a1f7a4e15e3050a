"""Progress-SQL's recipe: what it composes to, and (long) a whole small run through the real trainer."""

import json
from pathlib import Path
from typing import Any

import pytest

SAMPLE = "sizes.cold_start=400 sizes.train=48 sizes.dev=4 sizes.test=16 sizes.unseen=8"


def test_wrong_inputs_are_refused(tmp_path: Path, run_recipe: Any) -> None:
    done = run_recipe("progress_sql_grpo", tmp_path / "out", TRAIN_FILE="x")
    assert done.returncode == 2
    assert "TRAIN_FILE, VAL_FILE and DB_ROOT go together" in done.stderr


@pytest.mark.long
@pytest.mark.trainer
def test_a_whole_small_run(tmp_path: Path, run_recipe: Any) -> None:
    out = tmp_path / "out"
    overrides = ["trainer.total_training_steps=2", f"refinement.trajectories={out}/trajectories"]
    done = run_recipe("progress_sql_grpo", out, *overrides, timeout=900, SAMPLE=SAMPLE, COLD_START_STEPS="60")
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    lines = [json.loads(line)["data"] for line in (out / "metrics.jsonl").read_text().splitlines()]
    trained = [line for line in lines if "critic/score/mean" in line]
    assert len(trained) == 2
    for metrics in trained:
        assert {"groups/no_variance", "reward/spoiled/mean", "num_turns/mean"} <= set(metrics)
        assert 0 <= metrics["reward/repaired/mean"] <= metrics["reward/acc/mean"]
        assert 1 < metrics["reward/n_sql_turns/mean"] <= 3
    told: dict[str, set[str]] = {"train": set(), "validation": set()}
    for file in (out / "trajectories").iterdir():
        for line in file.read_text(encoding="utf-8").splitlines():
            turns = json.loads(line)["turns"]
            told[file.name.partition("_")[0]] |= {
                turn["content"].split()[1] for turn in turns if turn["role"] == "user"
            }
    assert told == {"train": {"SQL_diagnosis:"}, "validation": {"SQL_result:"}}
    rows = json.loads((out / "turn_table.json").read_text())
    assert {row["when"] for row in rows if row["split"] != "train"} == {"before", "after"}
