"""Answers in each paper's format are what that paper's reward looks for."""

import pytest

from verl_sql.dataset.answer_styles import AnswerForm, reasoning, written
from verl_sql.rewards.output_format import is_exactly
from verl_sql.sqltext.extract import FoundIn, extract_answer

CHAIN = "WITH chosen AS (SELECT name FROM team),\nkept AS (SELECT name FROM chosen)\nSELECT name FROM kept"


@pytest.mark.parametrize(
    ("form", "text"),
    [
        (AnswerForm.CHAIN, CHAIN),
        (AnswerForm.REASONING, f"<reasoning>chosen, then kept, then the answer.</reasoning>\n<answer>{CHAIN}</answer>"),
        (AnswerForm.THINK, f"<think>chosen, then kept, then the answer.</think>\n<answer>{CHAIN}</answer>"),
        (AnswerForm.SQL, f"chosen, then kept, then the answer.\n<sql>{CHAIN}</sql>"),
    ],
)
def test_each_form(form: AnswerForm, text: str) -> None:
    assert written(CHAIN, form) == text


@pytest.mark.parametrize("form", list(AnswerForm))
@pytest.mark.parametrize("sql", [CHAIN, "SELECT count(*) FROM team"])
def test_the_sql_is_found_again(form: AnswerForm, sql: str) -> None:
    assert extract_answer(written(sql, form)).sql == sql


def test_the_formats_are_the_papers() -> None:
    assert is_exactly(written(CHAIN, AnswerForm.REASONING), "reasoning", "answer")
    assert is_exactly(written(CHAIN, AnswerForm.THINK), "think", "answer")
    assert extract_answer(written(CHAIN, AnswerForm.SQL), "sql_tag").found_in == FoundIn.SQL_TAG


def test_reasoning_of_a_query_without_steps() -> None:
    assert reasoning("SELECT 1") == "One query is enough."
