"""`verl-sql rescore` on a dump as verl writes it."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from verl_sql.cli import build_app

GOLD = "SELECT name FROM team WHERE city = 'Rome'"
PROMPT = "user\n【DB_ID】 league\n【Schema】\n...\nassistant\n"


def write_dump(path: Path, rows: list[tuple[str, str, float]]) -> Path:
    lines = [{"input": PROMPT + q, "output": o, "gts": GOLD, "score": s, "step": 1} for q, o, s in rows]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def rescored(dump: Path, root: Path, *more: str) -> dict[str, Any]:
    arguments = ["rescore", str(dump), "--reward", "execution", "--db-root", str(root), "--json", *more]
    result = CliRunner().invoke(build_app(), arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


def test_rankings_and_signs(league_root: Path, tmp_path: Path):
    dump = write_dump(
        tmp_path / "1.jsonl",
        [
            # old 0.9, 0.1 -> new 0, 1: the order turns, both signs turn
            ("a", "SELECT name FROM team", 0.9), ("a", GOLD, 0.1),
            # old 1, 0 -> new 1, 0: nothing changes
            ("b", GOLD, 1.0), ("b", "SELECT 1", 0.0),
            # old 0.3, 0.2 -> new 0, 0: a signal is lost, both signs become 0
            ("c", "SELECT 1", 0.3), ("c", "SELECT 2", 0.2),
            # old 0, 0 -> new 1, 0: a signal is won
            ("d", GOLD, 0.0), ("d", "SELECT 2", 0.0),
        ],
    )  # fmt: skip
    found = rescored(dump, league_root)
    assert (found["rollouts"], found["groups"]) == (8, 4)
    assert (found["rankings_changed"], found["signs_changed"]) == (3, 6)
    assert (found["signal_lost"], found["signal_won"]) == (1, 1)
    assert found["mean_new"] == pytest.approx(3 / 8)


def test_new_rows_are_written(league_root: Path, tmp_path: Path):
    dump, out = write_dump(tmp_path / "1.jsonl", [("a", GOLD, 0.5)]), tmp_path / "new.jsonl"
    rescored(dump, league_root, "--out", str(out))
    (row,) = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    assert (row["line"], row["old_score"], row["score"], row["outcome"]) == (1, 0.5, 1.0, "match")


def test_a_line_that_is_no_rollout_is_named(league_root: Path, tmp_path: Path):
    dump = tmp_path / "1.jsonl"
    dump.write_text('{"output": "x"}\n', encoding="utf-8")
    result = CliRunner().invoke(build_app(), ["rescore", str(dump), "--reward", "execution"])
    assert result.exit_code == 2
    assert "line 1" in result.output.replace("\n", " ")


def test_an_unknown_reward_is_named(tmp_path: Path):
    dump = write_dump(tmp_path / "1.jsonl", [("a", GOLD, 0.5)])
    result = CliRunner().invoke(build_app(), ["rescore", str(dump), "--reward", "nonsense"])
    assert result.exit_code == 2
    assert "nonsense" in result.output
