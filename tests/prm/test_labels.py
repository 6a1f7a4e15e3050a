"""Step labels on a tree worked out by hand: a scripted policy over a real database; and labels on disk."""

import itertools
import multiprocessing
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from verl_sql.database.executor import Executor
from verl_sql.generation.sampler import Sampling
from verl_sql.prm.cutting import token_cut
from verl_sql.prm.label_files import read_labels, write_labels
from verl_sql.prm.labels import LabelCounts, Labelling, LabelQuestion, Record, label_questions

ASK = "How many players are older than 20?"
GOLD = "SELECT count(*) FROM player WHERE age > 20"  # 3
OLD, YOUNG = "old AS (SELECT id FROM player WHERE age > 20)", "young AS (SELECT id FROM player WHERE age < 25)"
BOTH = f"{OLD}, few AS (SELECT id FROM old LIMIT 2)"
RIGHT, WRONG = f"WITH {OLD} SELECT count(*) FROM old", f"WITH {OLD} SELECT sum(id) FROM old"
LOST, LOST_2 = f"WITH {YOUNG} SELECT count(*) FROM young", f"WITH {YOUNG}, b AS (SELECT 1) SELECT 5"
FEW, PLAIN, CUT = f"WITH {BOTH} SELECT count(*) FROM few", "SELECT 5", f"WITH {OLD}, few AS (SEL"
CHAINS = [RIGHT, WRONG, RIGHT, LOST, LOST_2, FEW, CUT, "", PLAIN]
SCRIPT = {
    (ASK, ""): CHAINS,
    (ASK, f"WITH {YOUNG}"): [" SELECT count(*) FROM young"],
    (ASK, f"WITH {BOTH}"): [" SELECT 4", " SELECT 3"],
}
"""With 3 completions a prefix, `old` (2 of 4 right) wants none, `young` (0 of 2) one, `old, few` (0 of 1) two."""


@pytest.fixture
def question(league: Path) -> LabelQuestion:
    info = {"question_id": "1", "db_id": "league", "split": "train"}
    return LabelQuestion("bird/train/1", ({"role": "user", "content": ASK},), GOLD, league, info)


def labelling(**options: Any) -> Labelling:
    return Labelling(**{"chains": 9, "completions": 3, **options})


def labels(records: Sequence[Record]) -> dict[str, list[int | None]]:
    return {record["chain"]: [step["label"] for step in record["steps"]] for record in records}


def test_a_tree_worked_out_by_hand(scripted: Any, question: LabelQuestion, executor: Executor) -> None:
    sampler = scripted(SCRIPT, cut_short=[CUT])
    records, counts = label_questions([question], sampler, executor, labelling())
    assert labels(records) == {RIGHT: [1], WRONG: [1], LOST: [0], LOST_2: [0, None], FEW: [1, 1], PLAIN: [0]}
    assert sampler.asked == [("", 9), (f"WITH {YOUNG}", 1), (f"WITH {BOTH}", 2)]
    told = counts.as_dict()
    assert told["completions"] == {
        "from_the_beginning": 9,
        "from_prefixes": 3,
        "spent": 12,
        "plain_loop": 33,
        "saved": 21,
    }
    assert told["left_out"] == {"cut": 1, "no_answer": 1}
    assert told["steps"] == {"1": {"right": 3, "wrong": 3}, "2": {"right": 1, "unknown": 1}}
    assert (told["chains"], told["right_chains"]) == (6, 1)


def test_a_record_holds_what_was_seen(scripted: Any, question: LabelQuestion, executor: Executor) -> None:
    records, _ = label_questions([question], scripted(SCRIPT, cut_short=[CUT]), executor, labelling())
    few = next(record for record in records if record["chain"] == FEW)
    assert few["steps"] == [
        {"end": len(f"WITH {OLD}"), "label": 1, "value": 0.5, "n": 4, "result": "3 rows: id\n2\n3\n4"},
        {"end": len(f"WITH {BOTH}"), "label": 1, "value": 0.3333, "n": 3, "result": "2 rows: id\n2\n3"},
    ]
    assert few["text"] == (
        f"{ASK}\n{OLD}\n3 rows: id\n2\n3\n4<|step|>\nfew AS (SELECT id FROM old LIMIT 2)\n2 rows: id\n2\n3<|step|>\n"
    )
    assert few["outcome_text"] == few["text"] + "SELECT count(*) FROM few\n1 row: count(*)\n2<|step|>\n"
    assert {name: few[name] for name in ("question", "question_id", "db_id", "split", "gold", "outcome", "times")} == {
        "question": "bird/train/1", "question_id": "1", "db_id": "league", "split": "train", "gold": GOLD, "outcome": 0,
        "times": 1,
    }  # fmt: skip
    masked = next(record for record in records if record["chain"] == LOST_2)["steps"][1]
    assert (masked["label"], masked["value"]) == (None, None)


def test_the_budget_leaves_steps_unknown(scripted: Any, question: LabelQuestion, executor: Executor) -> None:
    records, counts = label_questions([question], scripted(SCRIPT, [CUT]), executor, labelling(budget=10))
    assert labels(records)[FEW] == [1, None]
    assert labels(records)[LOST] == [0]
    assert counts.spent.total() == 10


def test_exact_values_are_shares_of_n(scripted: Any, question: LabelQuestion, executor: Executor) -> None:
    script = {**SCRIPT, (ASK, f"WITH {OLD}"): [" SELECT count(*) FROM old", " SELECT 1"]}
    records, _ = label_questions([question], scripted(script, [CUT]), executor, labelling(completions=6, exact=True))
    steps = {record["chain"]: [(step["value"], step["n"]) for step in record["steps"]] for record in records}
    assert steps[RIGHT] == [(0.5, 6)]
    assert steps[FEW] == [(0.5, 6), (0.3333, 6)]


def test_a_prefix_cut_at_a_token(scripted: Any, question: LabelQuestion, executor: Executor) -> None:
    few = f"WITH {BOTH}"
    back = [") SELECT 3", ", 1) SELECT 3"]
    script = {(ASK, ""): [FEW], (ASK, f"WITH {OLD}"[:-1]): back, (ASK, few[:-1]): [") SELECT 4"]}
    one = labelling(chains=1, completions=5)
    records, counts = label_questions([question], scripted(script), executor, one, lambda text, end: end - 1)
    assert labels(records) == {FEW: [1, 0]}
    assert [step["n"] for step in records[0]["steps"]] == [3, 5]
    assert counts.left_out["left_the_prefix"] == 2


def test_what_left_the_prefix_is_made_up_for(scripted: Any, question: LabelQuestion, executor: Executor) -> None:
    back = [") SELECT 4", ", 1) SELECT 3"]
    sampler = scripted({(ASK, ""): [WRONG], (ASK, f"WITH {OLD}"[:-1]): back})
    one = labelling(chains=1, completions=5)
    records, _ = label_questions([question], sampler, executor, one, lambda text, end: end - 1)
    assert labels(records) == {WRONG: [0]}
    assert [n for _, n in sampler.asked] == [1, 4, 2, 1]


def test_a_gold_that_fails_makes_no_step_wrong(scripted: Any, question: LabelQuestion, executor: Executor) -> None:
    broken = LabelQuestion(
        "bird/train/2", question.prompt, "SELECT nothing FROM player", question.database, question.info
    )
    records, counts = label_questions([broken, question], scripted(SCRIPT, [CUT]), executor, labelling())
    assert {record["question"] for record in records} == {"bird/train/1"}
    assert counts.left_out["gold_failed"] == 1


def test_each_call_has_a_seed_of_its_own(scripted: Any, question: LabelQuestion, executor: Executor) -> None:
    seeds = []

    class Noted(scripted):
        def sample(self, prompts: Any, sampling: Sampling) -> Any:
            seeds.append(sampling.seed)
            return super().sample(prompts, sampling)

    label_questions([question], Noted(SCRIPT, [CUT]), executor, labelling(sampling=Sampling(seed=7)))
    assert seeds == [10_007, 20_007, 30_007]


def test_where_a_prefix_may_be_cut(policy: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(policy)
    cut = token_cut(tokenizer)

    def read(text: str) -> list[int]:
        return tokenizer(text, add_special_tokens=False)["input_ids"]

    for chain in (RIGHT, FEW, "WITH é AS (SELECT '日本')), b AS (SELECT ((1)))\nSELECT 1"):
        places = [cut(chain, end) for end in range(len(chain) + 1)]
        assert places == sorted(places)
        assert places[-1] == len(chain)
        for end, at in enumerate(places):
            assert at <= end
            kept = read(chain[:at])
            assert read(chain)[: len(kept)] == kept


def test_brackets_that_share_a_token_with_what_follows() -> None:
    class Merging:
        """`)),` is one token, `))` another, everything else a token a character."""

        def __call__(self, text: str, **_: object) -> dict[str, list]:
            pieces = re.findall(r"\)\),|\)\)|.", text)
            starts = [0, *itertools.accumulate(map(len, pieces))]
            offsets = list(itertools.pairwise(starts))
            return {"input_ids": [hash(piece) for piece in pieces], "offset_mapping": offsets}

    cut = token_cut(Merging())
    text = "a AS (f(x)), b"
    assert [cut(text, end) for end in (9, 10, 11, 12, 14)] == [9, 9, 9, 12, 14]


QUESTIONS = [LabelQuestion(f"q/{n}", (), "", Path(), {"question_id": str(n)}) for n in range(5)]


def label_simply(block: Sequence[LabelQuestion]) -> tuple[list[Record], LabelCounts]:
    lines = [{"question": q.key, "text": "é", "outcome_text": "", "steps": [], "outcome": 0} for q in block]
    return lines, LabelCounts(questions=len(block), chains=len(block))


def killed_at(last: str) -> Any:
    """A labeller that the machine takes away when it meets a question."""

    def label(block: Sequence[LabelQuestion]) -> tuple[list[Record], LabelCounts]:
        if any(q.key == last for q in block):
            os.kill(os.getpid(), signal.SIGKILL)
        return label_simply(block)

    return label


def test_killed_and_started_again_it_ends_in_the_same_bytes(tmp_path: Path) -> None:
    out, whole, done = tmp_path / "a.jsonl", tmp_path / "b.jsonl", []
    expected = write_labels(whole, QUESTIONS, 2, {}, lambda: label_simply)
    process = multiprocessing.get_context("fork").Process(
        target=write_labels, args=(out, QUESTIONS, 2, {}, lambda: killed_at("q/3"))
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    assert not out.exists()

    def noted(block: Sequence[LabelQuestion]) -> tuple[list[Record], LabelCounts]:
        done.extend(q.key for q in block)
        return label_simply(block)

    assert write_labels(out, QUESTIONS, 2, {}, lambda: noted) == expected
    assert done == ["q/2", "q/3", "q/4"]
    assert out.read_bytes() == whole.read_bytes()
    assert expected["counts"]["chains"] == 5
    assert [record["question"] for record in read_labels(out)] == [q.key for q in QUESTIONS]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.jsonl", "a.report.json", "b.jsonl", "b.report.json"
    ]  # fmt: skip


def test_a_finished_file_is_not_made_again_and_other_settings_are_refused(tmp_path: Path) -> None:
    out = tmp_path / "a.jsonl"
    report = write_labels(out, QUESTIONS, 2, {"n": 1}, lambda: label_simply)
    assert write_labels(out, QUESTIONS, 2, {"n": 1}, lambda: killed_at("q/0")) == report
    with pytest.raises(ValueError, match="other settings"):
        write_labels(out, QUESTIONS, 2, {"n": 2}, lambda: label_simply)


@pytest.mark.parametrize(("text", "error"), [(None, FileNotFoundError), ('{"question": "a"}\n', ValueError)])
def test_what_is_no_file_of_labels(tmp_path: Path, text: str | None, error: type[Exception]) -> None:
    if text is not None:
        (tmp_path / "a.jsonl").write_text(text)
    with pytest.raises(error):
        list(read_labels(tmp_path / "a.jsonl"))
