"""The tokenizer: spans without gaps, and which quotes and comments lack their end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_sql.sqltext.scan import TokenKind, scan, significant, unquote


@pytest.mark.parametrize(
    ("text", "kind", "is_open"),
    [
        ("'", TokenKind.STRING, True),
        ("''", TokenKind.STRING, False),
        ("'it''s'", TokenKind.STRING, False),
        ("'it''", TokenKind.STRING, True),
        ('"a"', TokenKind.QUOTED, False),
        ("`a``", TokenKind.QUOTED, True),
        ("[a b]", TokenKind.QUOTED, False),
        ("[a b", TokenKind.QUOTED, True),
        ("/* a */", TokenKind.COMMENT, False),
        ("/*/", TokenKind.COMMENT, True),
        ("-- a 'b", TokenKind.COMMENT, False),
        ("naïve_1$", TokenKind.WORD, False),
        (";", TokenKind.PUNCT, False),
        (" \n\t", TokenKind.SPACE, False),
    ],
)
def test_one_token(text: str, kind: TokenKind, is_open: bool) -> None:
    (token,) = scan(text)
    assert (token.kind, token.start, token.end, token.open) == (kind, 0, len(text), is_open)


@given(st.one_of(st.text(), st.text(alphabet="'\"`[]-/*;( \n\\ab")))
def test_spans_cover_any_text(text: str) -> None:
    tokens = list(scan(text))
    assert "".join(text[token.start : token.end] for token in tokens) == text
    assert not any(token.open for token in tokens[:-1])


def test_significant_leaves_out_space_and_comments() -> None:
    text = "SELECT 'a -- b' -- c\n, /* d */ e"
    assert [text[t.start : t.end] for t in significant(text)] == ["SELECT", "'a -- b'", ",", "e"]


@pytest.mark.parametrize(
    ("written", "name"), [('"a""b"', 'a"b'), ("`a`", "a"), ("[a]]", "a]"), ("'it''s'", "it's"), ("a", "a"), ('"', '"')]
)
def test_unquote(written: str, name: str) -> None:
    assert unquote(written) == name
