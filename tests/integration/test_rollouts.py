"""Scored rollouts: what a line says, how a killed run goes on, and that the makers of sets read the file."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from omegaconf import OmegaConf

from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import RL_SCHEMA, read_rows, rl_row, write_rows
from verl_sql.dataset.sft.build import build_set
from verl_sql.dataset.sft.settings import SetKind, SetSettings
from verl_sql.evaluation.dumps import pair, read_dump, read_questions
from verl_sql.generation.sampler import Completion, Prompt, Sampling, SamplingError
from verl_sql.integration import rollouts
from verl_sql.integration.rollout_scoring import RewardMode, Scoring, process_reward
from verl_sql.integration.rollout_sources import rollout_settings_from
from verl_sql.integration.rollouts import RolloutSettings, sample_rollouts
from verl_sql.prm.rendering import STEP_TAG

ROOT = Path(__file__).parents[2]
RIGHT = "WITH a AS (SELECT * FROM player) SELECT COUNT(*) FROM a"
WRONG = "SELECT COUNT(*) FROM team"
QUESTIONS = 5


class Policy:
    """Answers each question right, wrong and with something cut; dies after some questions."""

    def __init__(self, dies_after: int = 99) -> None:
        self.asked: list[str] = []
        self.dies_after = dies_after

    def sample(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        if len(self.asked) >= self.dies_after:
            raise SamplingError("gone")
        self.asked += [prompt.messages[-1]["content"] for prompt in prompts]
        texts = [Completion(RIGHT, True), Completion(WRONG, True), Completion("WITH a AS (SELECT", False)]
        return [texts[: sampling.n] for _ in prompts]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Questions about the league database, all with the same gold."""
    gold = "SELECT COUNT(*) FROM player"
    examples = [Example("own", "train", f"q{i}", "league", f"Question {i}?", "", gold) for i in range(QUESTIONS)]
    rows = [rl_row(e, [{"role": "user", "content": e.question}], i) for i, e in enumerate(examples)]
    write_rows(tmp_path / "train.parquet", rows, RL_SCHEMA)
    return tmp_path / "train.parquet"


def settings(league_root: Path, n: int = 3, **options) -> RolloutSettings:
    return RolloutSettings("policy", Sampling(n=n), Scoring(RewardMode.RULE_OR, league_root, workers=1), **options)


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def test_lines_say_who_was_asked_and_what_the_answer_is_worth(source: Path, league_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    report = sample_rollouts([source], out, settings(league_root, questions=2), Policy)
    first, second, third = lines(out)[:3]
    assert first == {
        "data_source": "own", "split": "train", "question_id": "q0", "db_id": "league", "completion": RIGHT,
        "finished": True, "score": 1.0, "acc": 1.0, "outcome": "match", "pred": RIGHT, "n_steps": 1.0,
    }  # fmt: skip
    assert (second["score"], second["outcome"]) == (0.0, "mismatch")
    assert (third["score"], third["finished"]) == (0.0, False)
    counts = report["counts"]
    assert (counts["questions"], counts["rollouts"], counts["cut"]) == (2, 6, 2)
    assert counts["groups"] == {"mixed": 2}
    assert counts["accuracy"] == pytest.approx(1 / 3, abs=1e-4)
    assert json.loads((tmp_path / "r.report.json").read_text())["counts"] == counts


def test_the_makers_of_sets_read_them(source: Path, league_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    sample_rollouts([source], out, settings(league_root), Policy)
    build_set(source, tmp_path / "rs.parquet", SetSettings(SetKind.REJECTION, threshold=0.5), [out])
    build_set(source, tmp_path / "dpo.parquet", SetSettings(SetKind.PREFERENCE, keep=None), [out])
    kept = [row["messages"][-1]["content"] for row in read_rows(tmp_path / "rs.parquet")]
    pairs = [(r["chosen"][0]["content"], r["rejected"][0]["content"]) for r in read_rows(tmp_path / "dpo.parquet")]
    assert kept == [RIGHT] * QUESTIONS
    assert pairs == [(RIGHT, WRONG)] * QUESTIONS


def test_with_the_prompt_a_file_is_a_dump(source: Path, league_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "0.jsonl"
    sample_rollouts([source], out, settings(league_root, n=1, with_prompt=True), Policy)
    paired = pair(read_dump(out), read_questions([source]), "0.jsonl")
    assert [found[0].acc for found in paired] == [1.0] * QUESTIONS


@pytest.mark.parametrize("lost", [0, 1, 40, 700])
def test_a_killed_run_goes_on_where_it_stopped(
    lost: int, source: Path, league_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollouts, "PART", 2)
    whole, out = tmp_path / "whole.jsonl", tmp_path / "r.jsonl"
    sample_rollouts([source], whole, settings(league_root), Policy)
    with pytest.raises(SamplingError):
        sample_rollouts([source], out, settings(league_root), lambda: Policy(dies_after=4))
    out.write_bytes(out.read_bytes()[: len(out.read_bytes()) - lost])
    left = len(out.read_bytes().splitlines(keepends=True)) - (lost > 0)
    rest = Policy()
    sample_rollouts([source], out, settings(league_root), lambda: rest)
    assert out.read_bytes() == whole.read_bytes()
    assert rest.asked == [f"Question {i}?" for i in range(left // 3, QUESTIONS)]


def test_a_finished_file_loads_no_model(source: Path, league_root: Path, tmp_path: Path) -> None:
    out, policy = tmp_path / "r.jsonl", Policy()
    sample_rollouts([source], out, settings(league_root), lambda: policy)
    report = sample_rollouts([source], out, settings(league_root), lambda: Policy(dies_after=0))
    assert len(policy.asked) == report["counts"]["questions"] == QUESTIONS


def test_other_settings_do_not_continue_a_file(source: Path, league_root: Path, tmp_path: Path) -> None:
    out = tmp_path / "r.jsonl"
    sample_rollouts([source], out, settings(league_root), Policy)
    before = out.read_bytes()
    with pytest.raises(ValueError, match="other settings"):
        sample_rollouts([source], out, settings(league_root, n=2), Policy)
    (tmp_path / "r.report.json").unlink()
    with pytest.raises(ValueError, match="other settings"):
        sample_rollouts([source], out, settings(league_root), Policy)
    assert out.read_bytes() == before


class Judge:
    """A process reward model that believes in steps that count; keeps what it read."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def score(self, texts: Sequence[str]) -> list[list[float]]:
        self.read += texts
        return [[0.25 + 0.5 * ("COUNT(*)" in text)] * text.count(STEP_TAG) for text in texts]


@pytest.mark.parametrize(
    ("mode", "values"), [(RewardMode.PRM, [0.25, 0.75, 0.0]), (RewardMode.PRM_RULE_OR, [1.25, 0.75, 0.0])]
)
def test_rewards_with_a_process_reward_model(
    mode: RewardMode, values: list[float], source: Path, league_root: Path, tmp_path: Path
) -> None:
    out, judge = tmp_path / "r.jsonl", Judge()
    scoring = Scoring(mode, league_root, workers=1)
    sample_rollouts([source], out, replace(settings(league_root, questions=1), scoring=scoring), Policy, lambda: judge)
    found = lines(out)
    assert [line["score"] for line in found] == values
    assert [line["step_scores"] for line in found] == [[0.25], [0.75], []]
    assert len(judge.read) == 2
    assert all("Question 0?" in text for text in judge.read)


def test_a_mode_with_prm_needs_one(source: Path, league_root: Path, tmp_path: Path) -> None:
    scoring = Scoring(RewardMode.PRM, league_root, workers=1)
    with pytest.raises(ValueError, match="needs a process reward model"):
        sample_rollouts([source], tmp_path / "r.jsonl", replace(settings(league_root), scoring=scoring), Policy)


def test_process_rewards_by_hand() -> None:
    sql = "WITH a AS (SELECT 1), b AS (SELECT 2) SELECT * FROM b"
    assert process_reward([0.5, 1.0], sql, executed=True) == 0.75
    assert process_reward([0.5, 1.0], sql, executed=False) == 0.0
    assert process_reward([0.5], "WITH a AS (SELECT 1), b AS (SELECT", executed=True) == 0.0
    assert process_reward([], sql, executed=True) == 0.0


def configured(*arguments: str) -> dict[str, Any]:
    """The keys of data_prep/conf/rollouts.yaml with some of them given."""
    config = OmegaConf.load(ROOT / "data_prep" / "conf" / "rollouts.yaml")
    merged = OmegaConf.merge(config, OmegaConf.from_dotlist(["source=a.parquet", "out=b.jsonl", *arguments]))
    values = OmegaConf.to_container(merged, resolve=True)
    assert isinstance(values, dict)
    return {str(key): value for key, value in values.items()}


def test_settings_of_the_configuration() -> None:
    found = rollout_settings_from(configured("model=policy", "db_root=dbs", "sampling.n=4", "questions=10"))
    assert (found.policy, found.sampling, found.questions) == ("policy", Sampling(n=4), 10)
    assert (found.scoring.mode, found.scoring.db_root, found.prm) == (RewardMode.RULE_OR, Path("dbs"), "")
    served = rollout_settings_from(configured("endpoint.base_url=http://127.0.0.1:9/v1", "db_root=dbs"))
    assert served.policy == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["db_root=dbs"], "name the policy, either by model=… or by endpoint.base_url=…"),
        (["model=policy", "endpoint.base_url=http://127.0.0.1:9/v1", "db_root=dbs"], "name the policy, either by"),
        (["model=policy", "db_root=null"], "no folder of databases: give db_root=…"),
        (["model=policy", "db_root=dbs", "mode=prm"], "mode=prm needs the process reward model: prm.folder=…"),
        (["model=policy", "db_root=dbs", "mode=prm", "prm.folder=/nowhere"], "no process reward model /nowhere"),
        (["model=policy", "db_root=dbs", "mode=none"], "'none' is not a valid RewardMode"),
    ],
)
def test_wrong_settings_are_told(arguments: list[str], sentence: str) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=re.escape(sentence)):
        rollout_settings_from(configured(*arguments))


def test_a_mistake_ends_the_script_in_one_sentence(source: Path, league_root: Path) -> None:
    command = ["data_prep/rollouts.py", "source=/nowhere.parquet", f"out={source.parent}/r.jsonl"]
    command += [f"db_root={league_root}", "model=policy"]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == "rollouts: no parquet /nowhere.parquet; prepare one with data_prep first"
