"""A run directory is read whole, and what it lacks is named."""

import shutil
from pathlib import Path

import pytest

from verl_sql.evaluation.run_directory import IncompleteRunError, open_run


def test_reads_a_complete_run(run_dir: Path) -> None:
    run = open_run(run_dir)
    assert run.seconds == {"cold_start": 312.4, "grpo": 220}
    assert sorted(run.dumps) == [0, 3]
    assert [line.step for line in run.metrics] == [0, 1, 2, 3]
    assert "grad_norm" not in run.metrics[1].values
    assert [path.name for path in run.evaluation_files] == ["test.parquet", "unseen.parquet"]


NEEDED = ["run.json", "stages.jsonl", "metrics.jsonl", "validation/0.jsonl", "validation/3.jsonl", "data/test.parquet"]


@pytest.mark.parametrize("name", NEEDED)
def test_missing_file_is_named(run_dir: Path, name: str) -> None:
    (run_dir / name).unlink()
    named = "<step>.jsonl after" if name == "validation/3.jsonl" else name
    with pytest.raises(IncompleteRunError, match=named):
        open_run(run_dir)


def test_run_that_went_on_after_its_last_validation(run_dir: Path) -> None:
    with (run_dir / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4, "data": {"critic/score/mean": 0.5}}\n')
    with pytest.raises(IncompleteRunError, match=r"no validation/4\.jsonl after its last step"):
        open_run(run_dir)


def test_missing_folders_are_named(run_dir: Path) -> None:
    shutil.rmtree(run_dir / "validation")
    with pytest.raises(IncompleteRunError, match=r"no validation/0\.jsonl"):
        open_run(run_dir)
    with pytest.raises(IncompleteRunError, match="no run directory"):
        open_run(run_dir / "elsewhere")


SPOILED = [
    ("run.json", "{", "no JSON"),
    ("run.json", "[]", "does not say 'recipe'"),
    ("run.json", '{"recipe": "r", "profile": "cpu", "evaluation_files": []}', "does not say 'evaluation_files'"),
    ("stages.jsonl", '{"stage": "grpo"}', "line 1 does not name a stage"),
    ("metrics.jsonl", '{"step": 1}', "line 1 is not one of verl's file logger"),
    ("metrics.jsonl", '{"step": 1, "da', "line 1 is no JSON object"),
]


@pytest.mark.parametrize(("name", "text", "problem"), SPOILED)
def test_spoiled_file_is_named(run_dir: Path, name: str, text: str, problem: str) -> None:
    (run_dir / name).write_text(text)
    with pytest.raises(IncompleteRunError, match=f"{name}.*{problem}"):
        open_run(run_dir)
