"""A tokenizer for SQLite's lexical rules: quotes, comments, words and punctuation, with character spans.

It never fails: text that no rule covers becomes one punctuation token a character, and a quote or comment that is
not closed runs to the end of the text and says so.
"""

import re
import sys
from collections.abc import Iterator
from enum import StrEnum
from functools import partial
from typing import NamedTuple


class TokenKind(StrEnum):
    """What a token is."""

    SPACE = "space"
    """White space."""
    COMMENT = "comment"
    """`-- …` up to the end of the line, or `/* … */`."""
    STRING = "string"
    """A literal in single quotes."""
    QUOTED = "quoted"
    """A name in double quotes, backticks or brackets."""
    WORD = "word"
    """A keyword, a bare name or a number."""
    PUNCT = "punct"
    """One character of anything else."""


class Token(NamedTuple):
    """One token: its kind, its span in the text, and whether a quote or comment lacks its end."""

    kind: TokenKind
    start: int
    end: int
    open: bool


_COMMENT = r"--[^\n]*|/\*.*?(?:\*/|\Z)"
_STRING = r"'(?:[^']|'')*(?:'|\Z)"
_QUOTED = r'"(?:[^"]|"")*(?:"|\Z)|`(?:[^`]|``)*(?:`|\Z)|\[[^\]]*(?:\]|\Z)'
OPAQUE = f"{_COMMENT}|{_STRING}|{_QUOTED}"
"""Comments, literals and quoted names, as a pattern (with re.DOTALL): what other characters mean nothing inside of."""

_TOKEN = re.compile(
    rf"(?P<space>\s+)|(?P<comment>{_COMMENT})|(?P<string>{_STRING})|(?P<quoted>{_QUOTED})|(?P<word>[\w$]+)|(?P<punct>.)",
    re.DOTALL,
)
_KINDS = {kind.value: kind for kind in TokenKind}
_MAY_BE_OPEN = frozenset({"comment", "string", "quoted"})
_UNSEEN = frozenset({"space", "comment"})
_CLOSERS = {"'": "'", '"': '"', "`": "`", "[": "]"}
_new_token = partial(tuple.__new__, Token)  # half the time of calling Token


def scan(text: str, start: int = 0, end: int = sys.maxsize) -> Iterator[Token]:
    """Every token of `text[start:end]`; the spans count characters of `text` and leave no gap."""
    return map(_token, _TOKEN.finditer(text, start, end))


def significant(text: str, start: int = 0) -> Iterator[Token]:
    """The tokens of `text` from `start` on that are neither white space nor comments."""
    return (_token(match) for match in _TOKEN.finditer(text, start) if match.lastgroup not in _UNSEEN)


def _token(match: re.Match[str]) -> Token:
    """The token of a match."""
    name = match.lastgroup or "punct"
    is_open = name in _MAY_BE_OPEN and _is_open(_KINDS[name], match.group())
    return _new_token((_KINDS[name], match.start(), match.end(), is_open))


def unquote(token_text: str) -> str:
    """The name or literal inside its quotes, doubled quotes undone; anything else as it is."""
    opener = token_text[:1]
    closer = _CLOSERS.get(opener)
    if closer is None or len(token_text) < 2 or token_text[-1] != closer:
        return token_text
    inner = token_text[1:-1]
    return inner if opener == "[" else inner.replace(closer * 2, closer)


def _is_open(kind: TokenKind, text: str) -> bool:
    """Whether a quoted token or a block comment ran to the end of the text without being closed."""
    if kind is TokenKind.COMMENT:
        return text.startswith("/*") and (len(text) < 4 or not text.endswith("*/"))
    closer = _CLOSERS[text[0]]
    return not text.endswith("]") if closer == "]" else text[1:].count(closer) % 2 == 0
