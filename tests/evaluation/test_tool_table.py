"""The table of tools and training out of validation dumps: accuracies, intervals, calls, and the vote."""

import json
from pathlib import Path

import pytest

from verl_sql.dataset.example import Example
from verl_sql.dataset.multi_turn import write_multi_turn
from verl_sql.dataset.parquet import RL_SCHEMA, rl_row, write_rows
from verl_sql.evaluation.tool_table import arms_of_run, main, table
from verl_sql.sqltext.turns import call_text

GOLD = "SELECT name FROM team WHERE city = 'Rome'"
OTHER = "SELECT name FROM team"
CALL = call_text("search_literal", {"text": "rome"})
USED = (
    f"{CALL}\nuser\n<tool_response>\nteam.city = 'Rome' (1 row)\n</tool_response>\nassistant\n<answer>{GOLD}</answer>"
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two questions, each asked with and without tools, by a run and by the passes of an inference."""
    for word in ("", "tools\n"):
        examples = [Example("bird", "test", str(i), "league", f"q{i}", "", GOLD) for i in range(2)]
        rows = [rl_row(e, [{"role": "user", "content": f"{word}{e.question}"}], i) for i, e in enumerate(examples)]
        write_rows(tmp_path / f"{bool(word)}.parquet", rows, RL_SCHEMA)
    write_multi_turn(tmp_path / "True.parquet", tmp_path / "test.parquet", "verl_sql_tools")
    write_multi_turn(tmp_path / "False.parquet", tmp_path / "plain.parquet", "single_turn_agent", mark="no_tools")
    about = {"recipe": "r", "profile": "cpu", "evaluation_files": ["test.parquet", "plain.parquet"]}
    (tmp_path / "run.json").write_text(json.dumps(about), encoding="utf-8")
    (tmp_path / "metrics.jsonl").write_text('{"step": 3, "data": {"a": 1.0}}\n', encoding="utf-8")
    (tmp_path / "stages.jsonl").write_text('{"stage": "grpo", "seconds": 1}\n', encoding="utf-8")
    return tmp_path


def dump(path: Path, answers: dict[str, list[tuple[str, str, float]]]) -> None:
    """A validation dump: prompt -> (output, pred, acc) of each sample."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for prompt, samples in answers.items():
            for session, (output, pred, acc) in enumerate(samples):
                line = {
                    "input": f"user\n{prompt}\nassistant\n", "output": output, "gts": GOLD, "score": acc, "step": 0,
                    "uid": f"{prompt}!_{session}_0", "acc": acc, "pred": pred, "repaired": acc, "spoiled": 0.0,
                    "ran_out_turns": 0.0, "ran_out_tokens": 0.0,
                }  # fmt: skip
                file.write(json.dumps(line) + "\n")


PLAIN = (f"<answer>{OTHER}</answer>", OTHER, 0.0)


def test_before_and_after(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["q0", "q1", "tools\nq0", "tools\nq1"]
    dump(run / "validation" / "0.jsonl", {prompt: [PLAIN] for prompt in asked})
    trained = [PLAIN, PLAIN, (USED, GOLD, 1.0), PLAIN]
    dump(run / "validation" / "3.jsonl", {prompt: [answer] for prompt, answer in zip(asked, trained, strict=True)})
    arms = {(arm.policy, arm.tools): arm for arm in arms_of_run(run, [], None)}
    assert {key: arm.accuracy for key, arm in arms.items()} == {
        ("warm start", True): 0.0, ("warm start", False): 0.0, ("after RL", True): 0.5, ("after RL", False): 0.0,
    }  # fmt: skip
    best = arms["after RL", True]
    assert (best.questions, best.samples, best.split) == (2, 1, "test")
    assert (best.with_call, best.calls, best.turns, best.failed) == (0.5, 0.5, 1.5, 0.0)
    assert best.low == pytest.approx(0.0945, abs=1e-3)  # Wilson, 1 of 2
    assert best.high == pytest.approx(0.9055, abs=1e-3)
    assert best.logged["repaired"] == 0.5
    assert best.voted is None
    assert main([str(run), "--out", str(run / "table.json")]) == 0
    assert (
        "| after RL | test | yes | 50.0 | 9.5 to 90.5 | 50 % | 0.50 | 1.50 | 50.0 | 0.0 | – | – |"
        in capsys.readouterr().out
    )
    assert len(json.loads((run / "table.json").read_text())) == 4


def test_the_vote_of_samples(run: Path, league_root: Path) -> None:
    right, alike = (USED, GOLD, 1.0), (USED, f"{GOLD} ORDER BY 1", 1.0)
    none = ("I do not know", "", 0.0)
    dump(
        run / "samples" / "validation" / "0.jsonl",
        {
            "tools\nq0": [PLAIN, right, alike, none],  # two of four agree, written differently
            "tools\nq1": [PLAIN, PLAIN, right, none],
            "q0": [none, none, none, none],
            "q1": [PLAIN, none, none, none],
        },
    )
    arms = {arm.tools: arm for arm in arms_of_run(run, ["samples"], str(league_root))}
    assert (arms[True].samples, arms[True].accuracy, arms[True].voted, arms[True].passed) == (4, 3 / 8, 0.5, 1.0)
    assert (arms[False].accuracy, arms[False].voted, arms[False].passed) == (0.0, 0.0, 0.0)
    assert "| samples | test | yes | 37.5 |" in table(list(arms.values()))
