"""Parsing: bounds of time and depth, and an error where there is no tree."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verl_sql.sqltext.parse import MAX_SECONDS, nesting, parse_sql

WORDS = ["SELECT", "FROM", "WHERE", "(", ")", ",", "*", "a", "'b'", '"c"', "=", "AND", "UNION"]
WORDS += ["GROUP", "BY", "NOT", ";", "--", "\n"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1",
        "SELECT 1;",
        "SELECT a FROM t -- c",
        "SELECT a FROM t GROUP /* c */ BY a",
        "WITH a AS (SELECT 1) SELECT * FROM a",
    ],
)
def test_one_statement_has_a_tree(sql: str):
    assert parse_sql(sql).tree is not None
    assert parse_sql(sql).error is None


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("", "0 statements"),
        (";", "0 statements"),
        ("-- SELECT 1", "0 statements"),
        ("SELECT 1; SELECT 2", "2 statements"),
        ("SELECT FROM WHERE", ""),
        ("SELECT " + "(" * 300 + "1" + ")" * 300, "300 parentheses deep"),
        ("SELECT " + "NOT " * 5000 + "1", "nested too deep"),
        ("SELECT '" + "x" * 300_000 + "'", "300009 characters"),
    ],
)
def test_no_tree_says_why(sql: str, why: str):
    parsed = parse_sql(sql)
    assert parsed.tree is None
    assert parsed.error
    assert why in parsed.error


@pytest.mark.parametrize("unit", ["SELECT (", "UNION (", "x IN (", "CASE WHEN ", "f(", "WITH a AS (", "OVER ("])
def test_time_is_bounded(unit: str):
    start = time.monotonic()
    parse_sql("SELECT * FROM " + unit * 24 + "1" + ")" * (24 * unit.count("(")))
    assert time.monotonic() - start < MAX_SECONDS + 3


def test_the_same_text_is_parsed_once():
    assert parse_sql("SELECT 41 + 1").tree is parse_sql("SELECT 41 + 1").tree


def test_nesting_looks_past_quotes_and_comments():
    assert nesting("SELECT '(((', \"((\" -- (((\n, (1 + (2))") == 2


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=14))
def test_any_text_is_survived(words: list[str]):
    parsed = parse_sql(" ".join(words))
    assert (parsed.tree is None) != (parsed.error is None)
