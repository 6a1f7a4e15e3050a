"""Extraction: hand-written cases, exact spans, no exception and no blow-up for any text."""

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_sql.sqltext.extract import AnswerStyle, FoundIn, extract_answer

CASES = [json.loads(line) for line in (Path(__file__).parent / "extract_cases.jsonl").read_text().splitlines()]
PIECES = [
    *(
        "<think>",
        "</think>",
        "<reasoning>",
        "</reasoning>",
        "<answer>",
        "</answer>",
        "<sql>",
        "</sql>",
        "```sql\n",
        "```",
    ),
    *(
        "SELECT a FROM t",
        "WITH a AS (",
        ")",
        ";",
        "'",
        '"',
        "`",
        "[",
        "--",
        "/*",
        "*/",
        "\n",
        "\n\n",
        " ",
        "prose",
        "@@@SQL_START@@@",
    ),
    *("<|im_end|>", "é", "With this", ": "),
]


@pytest.mark.parametrize("case", CASES, ids=[case["why"] for case in CASES])
def test_hand_written_cases(case: dict) -> None:
    answer = extract_answer(case["completion"], case.get("style", "auto"))
    assert (answer.sql, answer.found_in) == (case["sql"], case["found_in"])
    assert answer.reasoning == case.get("reasoning")


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=25).map("".join)), st.sampled_from(AnswerStyle))
def test_spans_are_exact_for_any_text(completion: str, style: AnswerStyle) -> None:
    answer = extract_answer(completion, style)
    assert 0 <= answer.start <= answer.end <= len(completion)
    if answer.sql is None:
        assert answer.start == answer.end
        assert answer.found_in is FoundIn.NONE
    else:
        assert completion[answer.start : answer.end] == answer.sql
        assert answer.sql.strip()


@pytest.mark.parametrize(
    "wrapper",
    [
        "{}",
        "{};",
        "```sql\n{}\n```",
        "<answer>{}</answer>",
        "<answer>\n```sql\n{};\n```\n</answer>",
        "<sql>{}</sql>",
        "<think>x</think>\n{}",
    ],
)
def test_real_queries_come_back_as_written(shared_dir: Path, wrapper: str) -> None:
    golds = [
        row["query"].strip().rstrip("; ") for row in json.loads((shared_dir / "data/spider_dev/dev.json").read_text())
    ]
    golds += [row["SQL"].strip().rstrip("; ") for row in json.loads((shared_dir / "data/bird/dev.json").read_text())]
    lost = [gold for gold in golds if extract_answer(wrapper.format(gold)).sql != gold]
    assert lost == []


@pytest.mark.parametrize(
    "piece",
    ["(", "<answer>", "```", "\n\n", "/**/", "<think>", "WITH a", "SELECT 1\n\n", "; ", "'", ": WITH a b ", "(\n\n"],
)
def test_repetition_takes_linear_time(piece: str) -> None:
    started = time.perf_counter()
    extract_answer(piece * (60_000 // len(piece)))
    assert time.perf_counter() - started < 5


def test_unknown_style_is_refused() -> None:
    with pytest.raises(ValueError, match="xml"):
        extract_answer("SELECT 1", "xml")


def test_real_completions_give_what_a_reader_takes(shared_dir: Path) -> None:
    """`real_answers.jsonl` was written by reading the 180 completions: one (39) breaks off without an answer."""
    lines = (shared_dir / "data/raw_completions.jsonl").read_text(encoding="utf-8").splitlines()
    labels = [json.loads(line) for line in (Path(__file__).parent / "real_answers.jsonl").read_text().splitlines()]
    assert len(lines) == len(labels) == 180
    wrong = [
        label["line"]
        for line, label in zip(lines, labels, strict=True)
        if extract_answer(json.loads(line)["raw"]).sql != label["sql"]
    ]
    assert wrong == []
