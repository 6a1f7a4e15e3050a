"""SQL tokens: what counts as equal, and that no text breaks them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verl_sql.sqltext.tokens import sql_tokens, without_comments


@pytest.mark.parametrize(
    ("sql", "tokens"),
    [
        ("SELECT a FROM t", "select a from t"),
        ("select  A\n\tfrom T ;", "select a from t"),
        ("SELECT a -- b\nFROM t /* c */", "select a from t"),
        ("x>=1.5e-3 AND y<>.5||z", "x >= 1.5e-3 and y <> .5 || z"),
        ("SELECT t1.a, count(*)", "select t1 . a , count ( * )"),
        ("SELECT `Home Team`", "select|home team"),
        ("SELECT [a] FROM `order`", 'select a from "order"'),
        ("WHERE c = 'It''s Me'", "where|c|=|'It''s Me'"),
        ('WHERE c = "Rome"', 'where c = "Rome"'),
        ("'open", "'open"),
        ("", ""),
    ],
)
def test_tokens(sql: str, tokens: str):
    assert sql_tokens(sql) == tuple(tokens.split("|") if "|" in tokens and "||" not in tokens else tokens.split())


def test_comment_marks_inside_literals_stay():
    assert without_comments("SELECT '--x', \"/* y */\" -- z\nFROM t/*a*/") == "SELECT '--x', \"/* y */\"  \nFROM t"


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="aS'\"`[]-/*;(). 1\n=<é", max_size=40))
def test_any_text_gives_tokens(text: str):
    assert all(sql_tokens(text))
    assert isinstance(without_comments(text), str)
