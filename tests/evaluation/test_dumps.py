"""Dump lines find their question, and what does not fit is named."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from verl_sql.evaluation.dumps import Completion, DumpError, Question, pair, read_dump, read_questions


def questions_of(run_dir: Path) -> list[Question]:
    return read_questions([run_dir / "data" / "test.parquet", run_dir / "data" / "unseen.parquet"])


def completions_of(run_dir: Path) -> list[Completion]:
    return read_dump(run_dir / "validation" / "3.jsonl")


def test_reads_the_facts_of_a_question(run_dir: Path) -> None:
    question = questions_of(run_dir)[5]
    assert str(question) == "question 5 on music (test)"
    assert question.details == {"template": "filter", "exposure": "rl_only"}
    assert question.difficulty == "simple"
    assert question.message == "[schema]\nQuestion 5 of test, café?"


def test_every_question_gets_its_own_completion(run_dir: Path) -> None:
    questions = questions_of(run_dir)
    answered = pair(completions_of(run_dir), questions, "dump")
    for question, (completion,) in zip(questions, answered, strict=True):
        assert question.message in completion.prompt
        assert completion.gold == question.gold
    assert [samples[0].acc for samples in answered] == [0, 1, 1, 1, 1, 1, 1, 0, 0, 0]


def test_a_question_that_begins_another_is_told_apart(run_dir: Path) -> None:
    first, second = pair(completions_of(run_dir), questions_of(run_dir), "dump")[:2]
    assert "Show bands\nassistant" in first[0].prompt
    assert "Show bands by name\nassistant" in second[0].prompt


def test_white_space_and_composition_do_not_matter(run_dir: Path) -> None:
    changed = [replace(c, prompt=c.prompt.replace(" ", "  ").replace("é", "e\u0301")) for c in completions_of(run_dir)]
    answered = pair(changed, questions_of(run_dir), "dump")
    assert [samples[0].acc for samples in answered] == [0, 1, 1, 1, 1, 1, 1, 0, 0, 0]


def test_samples_of_a_question_stay_together(synthetic: dict[str, Any], tmp_path: Path) -> None:
    run_dir = synthetic["write_run"](tmp_path, samples=3)
    for samples in pair(completions_of(run_dir), questions_of(run_dir), "dump"):
        assert [sample.session for sample in samples] == [0, 1, 2]


def test_twins_share_the_completions() -> None:
    question = Question("test", "d", "1", "", {}, "q", "SELECT 1")
    completions = [Completion(uid, 0, "user q", "SELECT 1", "", float(uid == "b"), "") for uid in ("b", "a")]
    answered = pair(completions, [question, question], "dump")
    assert [samples[0].uid for samples in answered] == ["a", "b"]


def test_last_part_of_a_completion_counts(tmp_path: Path, synthetic: dict[str, Any]) -> None:
    row = synthetic["rows"]("test", 1)[0]
    parts = [{**synthetic["dump_line"](row, 3, f"u_0_{part}", True), "output": str(part)} for part in (9, 10)]
    synthetic["write_lines"](tmp_path / "3.jsonl", parts)
    assert [completion.output for completion in read_dump(tmp_path / "3.jsonl")] == ["10"]


def test_dump_without_uids_is_grouped_by_prompt(tmp_path: Path, synthetic: dict[str, Any]) -> None:
    rows = synthetic["rows"]("test", 2)
    lines = [synthetic["dump_line"](row, 3, "", True) for row in rows for _ in range(2)]
    synthetic["write_lines"](tmp_path / "3.jsonl", lines)
    messages = [row["prompt"][-1]["content"] for row in rows]
    questions = [Question("test", "", "", "", {}, message, lines[0]["gts"]) for message in messages]
    assert [len(samples) for samples in pair(read_dump(tmp_path / "3.jsonl"), questions, "dump")] == [2, 2]


def test_foreign_completion_is_named(run_dir: Path) -> None:
    first, *rest = completions_of(run_dir)
    with pytest.raises(DumpError, match=r"^3\.jsonl: no question .* gold query: 'SELECT 99'$"):
        pair([replace(first, gold="SELECT 99"), *rest], questions_of(run_dir), "3.jsonl")


def test_other_prompt_with_the_same_gold_is_named(run_dir: Path) -> None:
    first, *rest = completions_of(run_dir)
    with pytest.raises(DumpError, match="no question of the evaluation files has this prompt"):
        pair([replace(first, prompt="user\nsomething else"), *rest], questions_of(run_dir), "dump")


def test_missing_question_is_named(run_dir: Path) -> None:
    kept = [completion for completion in completions_of(run_dir) if completion.gold != "SELECT 5 /* test */"]
    with pytest.raises(DumpError, match=r"1 of 10 questions have no completion, first question 5 on music \(test\)"):
        pair(kept, questions_of(run_dir), "dump")


def test_question_answered_twice_is_named(run_dir: Path) -> None:
    completions = completions_of(run_dir)
    with pytest.raises(DumpError, match="answered twice"):
        pair([*completions, replace(completions[0], uid="another")], questions_of(run_dir), "dump")


BAD_LINES = [
    ("{", "cannot be read"),
    ("3", "cannot be read"),
    ('{"input": "", "output": "", "gts": ""}', "without 'acc'"),
    ('{"input": "", "output": "", "gts": "", "acc": null}', "cannot be read"),
]


@pytest.mark.parametrize(("text", "problem"), BAD_LINES)
def test_bad_line_is_named(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "0.jsonl").write_text(f"\n{text}\n")
    with pytest.raises(DumpError, match=f"0.jsonl line 2 .*{problem}"):
        read_dump(tmp_path / "0.jsonl")


def test_no_dump_and_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(DumpError, match="no validation dump"):
        read_dump(tmp_path / "0.jsonl")
    (tmp_path / "0.jsonl").touch()
    with pytest.raises(DumpError, match="empty"):
        read_dump(tmp_path / "0.jsonl")


def test_evaluation_file_of_another_shape(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"prompt": ["a"]}), tmp_path / "x.parquet")
    with pytest.raises(DumpError, match="lacks the column 'data_source'"):
        read_questions([tmp_path / "x.parquet"])
    with pytest.raises(DumpError, match="no evaluation file"):
        read_questions([tmp_path / "y.parquet"])
