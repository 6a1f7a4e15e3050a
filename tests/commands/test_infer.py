"""`verl-sql infer` and `verl-sql policies`: a policy behind an endpoint, the tables, and refusals in one sentence."""

import json
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from verl_sql.cli import build_app

TESTS = Path(__file__).parents[1]
JUDGED = runpy.run_path(str(TESTS / "evaluation" / "judged.py"))


@pytest.fixture
def endpoint() -> Iterator[Any]:
    """The endpoint of tests/generation, which recites."""
    running = runpy.run_path(str(TESTS / "generation" / "conftest.py"))["Endpoint"]()

    def reply(_: int, body: dict[str, Any]) -> tuple[int, list[tuple[str, str]]]:
        recited = JUDGED["RECITED"][int(body["messages"][-1]["content"][-2])]
        texts = recited[:1] if body["temperature"] == 0 else recited[1:]
        return 200, [(text, "stop") for text in texts[: body["n"]]]

    running.reply = reply
    yield running
    running.close()


@pytest.fixture
def arguments(tmp_path: Path, league_root: Path) -> list[str]:
    questions = JUDGED["write_questions"](tmp_path / "dev.parquet")
    return ["infer", str(questions), "--db-root", str(league_root), "-n", "4", "--workers", "1"]


def invoke(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(build_app(), arguments)
    return result.exit_code, result.stdout, result.stderr


def test_infer_and_policies(arguments: list[str], endpoint: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    code, shown, error = invoke(*arguments, "--base-url", endpoint.url, "--out", str(out), "--seed", "7")
    assert code == 0, error
    assert {request["seed"] for request in endpoint.requests} == {7}
    assert shown.splitlines()[-2:] == [
        "greedy: EX 33.3 [6.1, 79.2]",
        "self-consistency: EX 33.3 [6.1, 79.2]",
    ]
    assert "greedy -> self-consistency: 1 gained, 1 lost, McNemar p = 1" in shown
    assert any(
        line.split() == ["oracle", "(pass@n)", "66.7", "[20.8,", "93.9]", "33.3", "50.0"] for line in shown.splitlines()
    )
    assert json.loads((out / "summary.json").read_text())["policy"] == endpoint.url
    assert (out / "accuracy_over_n.png").read_bytes().startswith(b"\x89PNG")
    code, shown, _ = invoke("policies", f"SFT={out},{out}", f"GRPO={out},{out}", "--out", str(tmp_path / "table.json"))
    assert code == 0
    assert "| policy | greedy | self-consistency@4 | pass@4 |" in shown
    assert "| SFT | 33.3 [9.7, 70.0] (33.3, 33.3) |" in shown
    assert "| GRPO | +0 −0, p = 1 | +0 −0, p = 1 | +0 −0, p = 1 |" in shown
    assert "| greedy → self-consistency@4 | +2 −2, p = 1 | +2 −2, p = 1 |" in shown
    assert json.loads((tmp_path / "table.json").read_text())["questions"] == 6


REFUSED = [
    (["--out", "o"], "name the policy, either by --model or by --base-url"),
    (["--out", "o", "--model", "/no/policy"], "--model /no/policy is not a folder"),
    (["--out", "o", "--model", "org/m", "--engine", "eager"], "--engine takes KEY=VALUE, not 'eager'"),
]


@pytest.mark.parametrize(("more", "sentence"), REFUSED)
def test_infer_refuses_in_one_sentence(arguments: list[str], more: list[str], sentence: str) -> None:
    assert invoke(*arguments, *more) == (1, "", f"verl-sql infer: {sentence}\n")


def test_infer_names_an_endpoint_that_is_away(arguments: list[str], tmp_path: Path) -> None:
    code, _, error = invoke(*arguments, "--base-url", "http://127.0.0.1:9/v1", "--out", str(tmp_path / "run"))
    assert code == 1
    assert error.splitlines()[-1].startswith("verl-sql infer: http://127.0.0.1:9/v1 lists no model")


def test_infer_without_databases(arguments: list[str], endpoint: Any, tmp_path: Path) -> None:
    arguments[3] = str(tmp_path)
    code, _, error = invoke(*arguments, "--base-url", endpoint.url, "--out", str(tmp_path / "run"))
    assert (code, error) == (1, f"verl-sql infer: the database 'league' is not under {tmp_path}\n")


@pytest.mark.parametrize("text", ["SFT", "=folder", "SFT="])
def test_policies_wants_label_and_folder(text: str) -> None:
    code, _, error = invoke("policies", text)
    assert (code, error) == (1, f"verl-sql policies: name a policy as LABEL=FOLDER[,FOLDER…], not {text!r}\n")


def test_lengths_of_runs(tmp_path: Path) -> None:
    synthetic = runpy.run_path(str(TESTS / "evaluation" / "synthetic_run.py"))
    runs = [tmp_path / name for name in ("ours", "summed")]
    for run in runs:
        run.mkdir()
        synthetic["write_lines"](run / "metrics.jsonl", synthetic["metrics"]())
    code, shown, _ = invoke("report", *map(str, runs), "--lengths", str(tmp_path / "lengths.png"))
    assert code == 0
    assert shown.splitlines() == [
        "ours: accuracy (acc) 0.400 -> 0.400",
        "summed: accuracy (acc) 0.400 -> 0.400",
        f"wrote {tmp_path / 'lengths.png'}",
    ]
