"""The table of turns out of validation dumps and training metrics."""

import json
from pathlib import Path

import pytest

from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import RL_SCHEMA, rl_row, write_rows
from verl_sql.evaluation.turn_table import main, rows_of_run

LOGGED = ("first_right", "repaired", "spoiled", "n_sql_turns")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Four questions of two splits; training repairs what was wrong."""
    for split in ("test", "unseen"):
        examples = [Example("bird", split, str(i), "league", f"{split} {i}?", "", "SELECT 1") for i in range(2)]
        rows = [rl_row(e, [{"role": "user", "content": e.question}], i) for i, e in enumerate(examples)]
        write_rows(tmp_path / f"{split}.parquet", rows, RL_SCHEMA)
    (tmp_path / "validation").mkdir()
    before = {"test 0": (0, 0, 0, 1), "test 1": (1, 0, 1, 2), "unseen 0": (0, 0, 0, 1), "unseen 1": (0, 0, 0, 3)}
    after = {"test 0": (1, 0, 0, 1), "test 1": (0, 1, 0, 2), "unseen 0": (0, 0, 0, 1), "unseen 1": (1, 0, 0, 1)}
    for step, found in ((0, before), (4, after)):
        lines = [
            {
                "input": f"user\n{name}?\nassistant\n", "output": "x", "gts": "SELECT 1", "score": 0, "step": step,
                "uid": f"{name}_0_0", "acc": float((values[0] or values[1]) and not values[2]),
                **dict(zip(LOGGED, values, strict=True)),
            }
            for name, values in found.items()
        ]  # fmt: skip
        (tmp_path / "validation" / f"{step}.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    steps = [{"acc": 0.5, "first_right": 0.1 * n, "repaired": 0.5, "spoiled": 0, "n_sql_turns": 2} for n in range(1, 5)]
    metrics = [{"step": 0, "data": {"val": 1.0}}]
    metrics += [
        {"step": n, "data": {f"reward/{k}/mean": v for k, v in step.items()}} for n, step in enumerate(steps, 1)
    ]
    (tmp_path / "metrics.jsonl").write_text("\n".join(map(json.dumps, metrics)), encoding="utf-8")
    (tmp_path / "stages.jsonl").write_text('{"stage": "grpo", "seconds": 1}\n', encoding="utf-8")
    about = {"recipe": "r", "profile": "cpu", "evaluation_files": ["test.parquet", "unseen.parquet"]}
    (tmp_path / "run.json").write_text(json.dumps(about), encoding="utf-8")
    return tmp_path


def test_table(run: Path, capsys: pytest.CaptureFixture[str]):
    rows = rows_of_run(run)
    assert [(r.when, r.split, r.questions, r.first, r.final, r.repaired, r.spoiled, r.turns) for r in rows[:4]] == [
        ("before", "test", 2, 0.5, 0.0, 0.0, 0.5, 1.5), ("before", "unseen", 2, 0.0, 0.0, 0.0, 0.0, 2.0),
        ("after", "test", 2, 0.5, 1.0, 0.5, 0.0, 1.5), ("after", "unseen", 2, 0.5, 0.5, 0.0, 0.0, 1.0),
    ]  # fmt: skip
    assert [(r.when, r.split) for r in rows[4:]] == [
        ("first steps (1 to 3)", "train"),
        ("last steps (2 to 4)", "train"),
    ]
    assert [r.first for r in rows[4:]] == pytest.approx([0.2, 0.3])
    assert main([str(run), "--out", str(run / "turn_table.json")]) == 0
    assert (
        "| after | test | execution | 2 | 50.0 | 100.0 | 34.2 to 100.0 | 50.0 | 0.0 | 1.50 |" in capsys.readouterr().out
    )
    assert len(json.loads((run / "turn_table.json").read_text())) == 6
