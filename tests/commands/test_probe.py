"""What reward hacking earns: no attack beats an honest wrong answer, but for the exceptions named here."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from verl_sql.cli import build_app
from verl_sql.rewards.probe import ATTACKS, WRAPPERS

EXCEPTIONS = {
    "tabular_reasoning": {"several statements"},  # its terms compare texts, and this attack quotes the gold's
    "progress_sql": {"spoiled first turn"},  # getting better is what the paper pays for
}


@pytest.mark.parametrize("reward", ["execution", "reward_sql", *WRAPPERS])
def test_no_attack_beats_an_honest_wrong_answer(league_root: Path, reward: str):
    arguments = ["probe", "--reward", reward, "--db-root", str(league_root), "--timeout", "0.3", "--json"]
    result = CliRunner().invoke(build_app(), arguments)
    found = json.loads(result.output[result.output.index("{") :])
    assert set(found["exceptions"]) == EXCEPTIONS.get(reward, set())
    assert len(found["exceptions"]) <= 2
    assert len(found["attacks"]) == len(ATTACKS)
    assert result.exit_code == 0


def test_the_table(league_root: Path):
    arguments = ["probe", "--reward", "retoolsql", "--db-root", str(league_root), "--timeout", "0.3"]
    text = CliRunner().invoke(build_app(), arguments).output
    assert "= honest wrong answer" in text
    assert "0 of 21 attacks earn more" in text


def test_too_many_exceptions_end_in_failure(league_root: Path, tmp_path: Path):
    file = tmp_path / "generous.py"
    file.write_text(
        "def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):\n"
        "    return {'score': float(len(solution_str) != 0 and '1' in solution_str), 'outcome': 'mismatch'}\n",
        encoding="utf-8",
    )
    result = CliRunner().invoke(build_app(), ["probe", "--reward", str(file), "--db-root", str(league_root)])
    assert result.exit_code == 1
