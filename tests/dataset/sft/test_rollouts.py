"""Rollouts, rejection sampling and preference pairs, worked by hand."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from verl_sql.dataset.sft.preference import Pairing, preference_rows
from verl_sql.dataset.sft.questions import Question, read_questions, said
from verl_sql.dataset.sft.rejection import rejection_rows
from verl_sql.dataset.sft.rollouts import Rollout, by_question, read_rollouts


def write(path: Path, *lines: dict) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines) + "\n", encoding="utf-8")
    return path


def rollout(text: str, score: float) -> Rollout:
    return Rollout("q0", "", (said(text),), score, None)


@pytest.fixture
def question(source: Path) -> Question:
    return next(read_questions(source))


def test_lines_are_read(tmp_path: Path) -> None:
    turns = [{"role": "assistant", "content": "try"}, {"role": "tool", "content": "error"}, said("again")]
    file = write(
        tmp_path / "r.jsonl",
        {"question_id": 7, "completion": "a", "score": 2, "acc": 1},
        {"question_id": "q1", "data_source": "own", "split": "train", "messages": turns, "acc": 0.0},
    )
    one, two = read_rollouts([file])
    assert one == Rollout("7", "", (said("a"),), 2.0, 1.0)
    assert (two.key, two.text, two.score, len(two.messages)) == ("own/train/q1", "again", 0.0, 3)


@pytest.mark.parametrize(
    "line", [{"completion": "a"}, {"question_id": 1}, {"question_id": 1, "messages": [{"role": "tool"}]}]
)
def test_a_line_without_its_parts_is_named(tmp_path: Path, line: dict) -> None:
    with pytest.raises(ValueError, match=r"r.jsonl, line 1: a rollout has"):
        list(read_rollouts([write(tmp_path / "r.jsonl", line)]))


def test_rollouts_find_their_questions(source: Path, tmp_path: Path) -> None:
    dump = {
        "input": "user\nQuestion 1?\nassistant\n",
        "output": "dumped",
        "gts": "SELECT COUNT(*) FROM player",
        "score": 1.0,
    }
    file = write(
        tmp_path / "r.jsonl",
        {"question_id": "q0", "completion": "by id", "score": 1},
        {"question_id": "q1", "data_source": "own", "split": "train", "completion": "by key", "score": 1},
        {"question_id": "q1", "data_source": "other", "split": "train", "completion": "elsewhere", "score": 1},
        dump,
        dump | {"input": "another question", "output": "not ours"},
    )
    groups = {
        q.info["question_id"]: [r.text for r in found]
        for q, found in by_question(read_rollouts([file]), read_questions(source))
    }
    assert groups == {"q0": ["by id"], "q1": ["by key", "dumped"]}


def test_an_id_of_several_questions_is_refused(source: Path, tmp_path: Path) -> None:
    file = write(tmp_path / "r.jsonl", {"question_id": "q0", "completion": "a", "score": 1})
    twice = [*read_questions(source), *read_questions(source)]
    with pytest.raises(ValueError, match="q0 belongs to several questions"):
        list(by_question(read_rollouts([file]), twice))


def test_rejection_keeps_what_is_above_best_first(question: Question) -> None:
    group = [(question, [rollout("a", 1.0), rollout("b", 1.5), rollout("c", 2.0), rollout("c", 2.0)])]
    texts = [row["messages"][-1]["content"] for row in rejection_rows(group, 1.0)]
    assert texts == ["c", "b"]
    assert [r["messages"][-1]["content"] for r in rejection_rows(group, 1.0, per_question=1)] == ["c"]
    first = next(rejection_rows(group, 1.0))
    assert [m["role"] for m in first["messages"]] == ["system", "user", "assistant"]


def test_rejection_keeps_no_chain_that_was_cut(question: Question) -> None:
    counts: Counter[str] = Counter()
    cut = replace(rollout("b", 1.0), finished=False)
    rows = list(rejection_rows([(question, [rollout("a", 1.0), cut, rollout("c", 0.0)])], 0.5, counts=counts))
    assert [row["messages"][-1]["content"] for row in rows] == ["a"]
    assert (counts["cut"], counts["above"], counts["distinct"]) == (1, 1, 1)


def test_rejection_drops_chains_that_are_built_alike(question: Question) -> None:
    alike = ["WITH a AS (SELECT x FROM t) SELECT * FROM a", "WITH b AS (SELECT y FROM u) SELECT * FROM b"]
    other = "WITH a AS (SELECT COUNT(*) AS n FROM t WHERE x > 1 AND y < 2 GROUP BY z) SELECT n FROM a ORDER BY n"
    group = [(question, [rollout(text, 1.0) for text in (*alike, other)])]
    counts: Counter[str] = Counter()
    texts = [row["messages"][-1]["content"] for row in rejection_rows(group, 0.5, diversity=0.2, counts=counts)]
    assert texts == [alike[0], other]
    assert (counts["distinct"], counts["diverse"]) == (3, 2)
    assert (counts["diverse_at_0.0"], counts["diverse_at_0.1"], counts["diverse_at_0.2"]) == (3, 2, 2)


def pairs(question: Question, scores: dict[str, float], **options) -> list[tuple[str, str]]:
    group = [(question, [rollout(text, score) for text, score in scores.items()])]
    rows = preference_rows(group, **options)
    return [(row["chosen"][-1]["content"], row["rejected"][-1]["content"]) for row in rows]


def test_the_higher_reward_wins_and_ties_give_no_pair(question: Question) -> None:
    assert pairs(question, {"a": 0.0, "b": 1.0, "c": 0.5, "d": 0.25}) == [("b", "a")]
    assert pairs(question, {"a": 0.0, "b": 1.0, "c": 0.5, "d": 0.25}, per_question=None) == [("b", "a"), ("c", "d")]
    assert pairs(question, {"a": 1.0, "b": 1.0}, pairing=Pairing.ALL) == []
    assert pairs(question, {"a": 1.0}) == []


def test_all_pairs_and_the_margin(question: Question) -> None:
    scores = {"a": 0.0, "b": 1.0, "c": 0.75}
    every = pairs(question, scores, pairing=Pairing.ALL, per_question=None)
    assert every == [("b", "a"), ("c", "a"), ("b", "c")]
    assert pairs(question, scores, pairing=Pairing.ALL, per_question=None, margin=0.5) == every[:2]


def test_pairs_do_not_depend_on_the_order_of_the_rollouts(question: Question) -> None:
    scores = {"a": 1.0, "b": 0.0, "c": 1.0, "d": 0.0, "e": 0.5}
    backwards = dict(reversed(scores.items()))
    for pairing in Pairing:
        assert pairs(question, scores, pairing=pairing, per_question=2) == pairs(
            question, backwards, pairing=pairing, per_question=2
        )


def test_a_cut_rollout_may_lose_but_not_win(question: Question) -> None:
    cut, counts = replace(rollout("cut", 1.0), finished=False), Counter()
    group = [(question, [cut, rollout("a", 0.5), rollout("b", 0.0)])]
    rows = list(preference_rows(group, Pairing.ALL, per_question=None, counts=counts))
    assert [(row["chosen"][-1]["content"], row["rejected"][-1]["content"]) for row in rows] == [("a", "b")]
    loser = [(question, [replace(cut, score=0.0), rollout("a", 0.5)])]
    assert [row["rejected"][-1]["content"] for row in preference_rows(loser, counts=counts)] == ["cut"]
    assert counts == {"distinct": 5, "pairs": 2, "without_pair": 0}


def test_of_equal_rewards_the_likelier_mistake_is_paired(question: Question) -> None:
    written = {"rare": 1, "likely": 3, "never right": 2}
    wrong = [rollout(text, 0.0) for text, times in written.items() for _ in range(times)]
    group = [(question, [rollout("right", 1.0), *wrong])]
    for pairing in Pairing:
        (row,) = preference_rows(group, pairing, per_question=1)
        assert row["rejected"][-1]["content"] == "likely"
    every = preference_rows(group, Pairing.ALL, per_question=None)
    assert [row["rejected"][-1]["content"] for row in every] == ["likely", "never right", "rare"]
