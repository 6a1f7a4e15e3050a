"""`verl-sql explain` on hand-made pairs and on a dump line."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from verl_sql.cli import build_app

GOLD = "SELECT name, city FROM team WHERE city = 'Rome'"


def run(*arguments: str) -> str:
    result = CliRunner().invoke(build_app(), ["explain", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def explained(root: Path, pred: str, reward: str = "reasoning_sql", gold: str = GOLD) -> dict:
    output = run("--db", "league", "--db-root", str(root), "--gold", gold, "--pred", pred, "--reward", reward, "--json")
    return json.loads(output[output.index("{") :])


def test_people_see_every_step(league_root: Path):
    database = str(league_root / "league" / "league.sqlite")
    text = run("--db", database, "--gold", GOLD, "--pred", "SELECT name, city FROM team", "--reward", "retoolsql")
    for part in ("Extraction", "bare", "Parse", "Execution", "bird_set 0", "+ ('Bears', 'Oslo')", "where: missing",
                 "outcome mismatch"):  # fmt: skip
        assert part in text
    assert re.search(r"syntax +1\.0000 x 0\.5 +=  0\.5000", text)


def test_points_add_up_to_the_score(league_root: Path):
    found = explained(league_root, "SELECT name FROM team")
    assert sum(term["points"] for term in found["terms"]) == pytest.approx(found["verdict"]["score"])
    assert found["items"] == {"missing": ["team.city"], "extra": []}
    assert [d["clause"] for d in found["clauses"]] == ["select", "where"]


@pytest.mark.parametrize(
    ("pred", "change"),
    [
        ("SELECT city, name FROM team WHERE city = 'Rome'", "the same columns in the order name, city"),
        ("SELECT name FROM team WHERE city = 'Rome'", "2 columns as in the gold, not 1"),
        ("SELECT name, city FROM team", "gold 2 rows, predicted 4"),
        ("SELECT nam FROM team", "no such column: nam"),
        ("I cannot say.", "an answer where the reward looks for it"),
        (f"{GOLD} UNION ALL {GOLD}", "it would be wrong by bag"),
    ],
)
def test_what_would_change_the_outcome(league_root: Path, pred: str, change: str):
    assert change in " ".join(explained(league_root, pred)["changes"])


def test_a_failing_gold_is_named(league_root: Path):
    found = explained(league_root, "SELECT 1", gold="SELECT nope FROM team")
    assert "the gold itself fails" in found["changes"][0]


def test_a_dump_line(league_root: Path, tmp_path: Path):
    prompt = "user\n【DB_ID】 league\n【Schema】\n..."
    rows = [
        {"input": prompt, "output": "x", "gts": GOLD, "score": 0.0, "step": 1},
        {"input": prompt, "output": f"<answer>{GOLD}</answer>", "gts": GOLD, "score": 1.0, "step": 1},
    ]
    dump = tmp_path / "1.jsonl"
    dump.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    text = run("--dump", str(dump), "--line", "2", "--db-root", str(league_root), "--reward", "retoolsql")
    assert "outcome match" in text


def test_missing_arguments_are_refused():
    result = CliRunner().invoke(build_app(), ["explain", "--db", "league"])
    assert result.exit_code == 2


def test_a_trajectory_is_shown_turn_by_turn(league_root: Path, tmp_path: Path):
    call = '<tool_call>\n{"name": "search_literal", "arguments": {"text": "rome"}}\n</tool_call>'
    output = (
        f"Look first.\n{call}\nuser\n<tool_response>\nteam.city = 'Rome' (2 rows)\n</tool_response>\nassistant\n"
        f"<answer>{GOLD}</answer>"
    )
    dump = tmp_path / "1.jsonl"
    dump.write_text(json.dumps({"input": "q", "output": output, "gts": GOLD, "score": 3.8}) + "\n", encoding="utf-8")
    asked = ("--dump", str(dump), "--db", "league", "--db-root", str(league_root), "--reward", "retoolsql")
    text = run(*asked)
    for line in (
        "1 assistant: Look first.",
        '1 calls search_literal: {"text": "rome"}',
        "2 tool: team.city = 'Rome' (2 rows)",
        f"3 assistant: <answer>{GOLD}</answer>",
        "outcome match",
    ):
        assert line in text
    output = run(*asked, "--json")
    turns = json.loads(output[output.index("{") :])["turns"]
    assert [turn["role"] for turn in turns] == ["assistant", "tool", "assistant"]
    assert turns[0]["calls"] == [{"name": "search_literal", "arguments": {"text": "rome"}}]
