"""`verl-sql report`: writes, prints the result last, and fails with one sentence."""

import json
import runpy
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from verl_sql.cli import build_app

SYNTHETIC = Path(__file__).parents[1] / "evaluation" / "synthetic_run.py"


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    return runpy.run_path(str(SYNTHETIC))["write_run"](tmp_path / "run")


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(build_app(), ["report", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_writes_and_prints_the_result_last(run_dir: Path) -> None:
    code, out, _ = run(str(run_dir))
    assert code == 0
    assert (run_dir / "plot.png").is_file()
    assert json.loads((run_dir / "summary.json").read_text())["by_split"]["test"]["gained"] == 4
    unseen, test = out.splitlines()[-2:]
    assert unseen.startswith("unseen: EX 0.0 [0.0, 65.8] -> 0.0 [0.0, 65.8] on 2 questions")
    assert test.startswith("test: EX 37.5 [13.7, 69.4] -> 75.0 [40.9, 92.9] on 8 questions")
    assert test.endswith("(4 gained, 1 lost, McNemar p = 0.38)")


def test_table_has_every_group_unbroken(run_dir: Path) -> None:
    _, out, _ = run(str(run_dir))
    assert "cold_start 312 s, grpo 220 s" in out
    for name in ("all", "test", "unseen", "test: cold start", "test: not cold start", "test: simple"):
        assert any(line.strip().startswith(name + " ") and line.count("[") == 2 for line in out.splitlines()), name
    assert "outcomes after: match 6, mismatch 4" in out
    assert "3 steps; mean reward 0.200 at the first, 0.600 at the last" in out


def test_json_for_machines(run_dir: Path) -> None:
    code, out, _ = run(str(run_dir), "--json")
    assert code == 0
    assert json.loads(out) == json.loads((run_dir / "summary.json").read_text())


def test_incomplete_run_ends_with_one_sentence(run_dir: Path) -> None:
    (run_dir / "metrics.jsonl").unlink()
    code, out, error = run(str(run_dir))
    assert (code, out) == (1, "")
    assert error == f"verl-sql report: {run_dir} is not a complete run: it has no metrics.jsonl\n"


def test_dump_of_other_questions_ends_with_one_sentence(run_dir: Path) -> None:
    dump = run_dir / "validation" / "3.jsonl"
    dump.write_text(dump.read_text(encoding="utf-8").split("\n", 1)[1], encoding="utf-8")
    code, _, error = run(str(run_dir))
    assert code == 1
    assert "1 of 10 questions have no completion" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize("package", ["scipy", "matplotlib.figure"])
def test_missing_package_ends_with_one_sentence(run_dir: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    code, _, error = run(str(run_dir))
    assert code == 1
    assert "pip install" in error
    assert error.count("\n") == 1
