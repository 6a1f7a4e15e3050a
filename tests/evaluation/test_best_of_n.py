"""Sampling, judging and the summary on three questions, against values worked out by hand; and what a kill costs."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from verl_sql.evaluation.best_of_n import Inference, judge_stage, sample_stage, summary_stage
from verl_sql.evaluation.candidates import CandidatesError, read_candidates
from verl_sql.evaluation.inference_folder import SettingsDifferError
from verl_sql.generation.sampler import Sampling

Run = tuple[Inference, Path]


@pytest.fixture
def run(judged: dict[str, Any], tmp_path: Path, league_root: Path) -> Run:
    questions = judged["write_questions"](tmp_path / "dev.parquet")
    return Inference((questions,), league_root, "reciting", Sampling(n=4), "prm", "orm", workers=1), tmp_path / "out"


@pytest.fixture
def finished(run: Run, judged: dict[str, Any]) -> Run:
    sample_stage(*run, judged["Reciting"])
    judge_stage(*run, judged["Counting"], lambda: judged["Counting"](score_final=True))
    return run


def never() -> Any:
    raise AssertionError("a model was loaded although nothing was left to do")


def test_candidates_by_hand(finished: Run) -> None:
    city, count, age = read_candidates(finished[1] / "candidates.jsonl")
    assert (city.key, city.db_id, city.split, age.split) == ("league/dev/0", "league", "dev", "unseen")
    assert [c.status for c in city.samples] == ["error", "ok", "ok", "ok"]
    assert [c.right for c in (city.greedy, *city.samples)] == [False, False, True, True, True]
    assert city.samples[1].digest == city.samples[2].digest != city.greedy.digest
    assert [c.step_scores for c in city.samples] == [(0.25,), (0.25, 0.5), (0.25,), (0.25, 0.5)]
    assert [c.outcome_score for c in city.samples] == [0.25, 0.75, 0.25, 0.75]  # the final query is a third tag
    assert [c.status for c in count.samples] == ["no_answer", "ok", "ok", "ok"]
    assert (count.samples[0].step_scores, count.samples[0].outcome_score) == ((), 0.0)
    assert (age.greedy.n_steps, age.greedy.step_scores, age.greedy.finished) == (1, (0.25,), False)


def test_summary_by_hand(finished: Run) -> None:
    found = summary_stage(*finished)
    right = {name: int(one["right"]) for name, one in found["accuracy"].items()}
    assert right == {
        "greedy": 1, "first_executable": 1, "self_consistency": 1, "outcome_model": 1, "prm_mean": 1, "prm_min": 1,
        "prm_product": 1, "prm_last": 1, "outcome_vote": 1, "prm_vote": 1, "oracle": 2,
    }  # fmt: skip
    assert found["sample_accuracy"] == pytest.approx((3 + 1 + 0) / 12)
    # one sample of four: 3/4, 1/4 and 0 right; two: 1 - 0, 1 - C(3,2)/C(4,2), 0
    assert found["accuracy_over_n"]["oracle"] == pytest.approx({"1": 1 / 3, "2": 1.5 / 3, "4": 2 / 3})
    assert found["by_split"]["unseen"]["oracle"]["right"] == 0
    assert found["candidates"]["statuses"] == {"ok": 6, "error": 5, "no_answer": 1}
    assert found["candidates"]["none_executes"] == 1
    change = next(test for test in found["paired"] if (test["from"], test["to"]) == ("greedy", "self_consistency"))
    assert (change["gained"], change["lost"], change["mcnemar_p"]) == (1, 1, 1.0)
    assert found["quadrants"]["greedy"] == {"high_right": 0, "high_wrong": 0, "low_wrong": 2 / 3, "low_right": 1 / 3}


def test_steps_of_equal_chains_are_counted_once(finished: Run) -> None:
    work = summary_stage(*finished)["work"]
    # question 0: 1 + 1 + 2 + 1 + 2 steps, CITY twice; question 1: 4 queries; question 2: 1 + 4 with SELECT x twice
    assert (work["prefixes"], work["distinct_prefixes"]) == (7 + 4 + 5, 5 + 4 + 4)
    assert (work["texts"], work["distinct_texts"]) == (2 * 14, 2 * 12)


def test_greedy_is_sampled_apart(run: Run, judged: dict[str, Any]) -> None:
    sampler = judged["Reciting"]()
    sample_stage(*run, lambda: sampler)
    assert [(count, s.n, s.temperature) for count, s in sampler.asked] == [(3, 1, 0.0), (3, 4, 1.0)]


def test_nothing_is_done_twice(finished: Run) -> None:
    before = (finished[1] / "candidates.jsonl").read_bytes()
    sample_stage(*finished, never)
    judge_stage(*finished, never, never)
    assert (finished[1] / "candidates.jsonl").read_bytes() == before


@pytest.mark.parametrize("file", ["completions.jsonl", "candidates.jsonl"])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.97])
def test_a_killed_run_goes_on(finished: Run, judged: dict[str, Any], file: str, share: float) -> None:
    path = finished[1] / file
    whole = path.read_bytes()
    os.truncate(path, int(len(whole) * share))
    sample_stage(*finished, judged["Reciting"])
    judge_stage(*finished, judged["Counting"], lambda: judged["Counting"](score_final=True))
    assert path.read_bytes() == whole


CHANGED: list[Callable[[Inference], Inference]] = [
    lambda run: replace(run, sampling=Sampling(n=2)),
    lambda run: replace(run, policy="another"),
]


@pytest.mark.parametrize("change", CHANGED)
def test_completions_of_other_settings_are_refused(finished: Run, change: Callable[[Inference], Inference]) -> None:
    with pytest.raises(SettingsDifferError, match=r"completions\.jsonl was made with another (n|policy)"):
        sample_stage(change(finished[0]), finished[1], never)


def test_candidates_of_another_model_are_refused(finished: Run) -> None:
    with pytest.raises(SettingsDifferError, match="another process reward model; delete it"):
        judge_stage(replace(finished[0], prm="another"), finished[1], never, never)


def test_without_reward_models(run: Run, judged: dict[str, Any]) -> None:
    plain = replace(run[0], prm="", orm=""), run[1]
    sample_stage(*plain, judged["Reciting"])
    judge_stage(*plain)
    found = summary_stage(*plain)
    assert list(found["accuracy"]) == ["greedy", "first_executable", "self_consistency", "oracle"]
    assert (found["quadrants"], found["prm_without_dropping"]) == ({}, None)


def test_latency_of_every_n(run: Run, judged: dict[str, Any]) -> None:
    timed = replace(run[0], latency=1), run[1]
    sample_stage(*timed, judged["Reciting"])
    judge_stage(*timed, judged["Counting"])
    latency = summary_stage(*timed)["latency"]
    assert list(latency) == ["1", "2", "4"]
    assert all(set(stages) == {"generation", "execution", "rendering", "prm"} for stages in latency.values())
    assert all(seconds >= 0 for stages in latency.values() for seconds in stages.values())


def test_judging_wants_all_completions(run: Run, judged: dict[str, Any]) -> None:
    sample_stage(replace(run[0], first=1), run[1], judged["Reciting"])
    with pytest.raises(ValueError, match="has 1 of 3 questions"):
        judge_stage(*run)


def test_an_empty_folder_has_no_summary(run: Run) -> None:
    with pytest.raises(CandidatesError, match="there is no file of candidates"):
        summary_stage(*run)
