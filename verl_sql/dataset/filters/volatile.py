"""Golds whose result changes by itself: they ask for the current time or for random numbers."""

from collections.abc import Iterator

from verl_sql.dataset.reasons import Finding, Reason
from verl_sql.sqltext.scan import Token, TokenKind, significant, unquote

_CLOCK_WORDS = frozenset({"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP"})
# Date functions and how many arguments they have before the one that defaults to the current time.
_CLOCK_FUNCTIONS = {"DATE": 0, "TIME": 0, "DATETIME": 0, "JULIANDAY": 0, "UNIXEPOCH": 0, "STRFTIME": 1}
_RANDOM_FUNCTIONS = frozenset({"RANDOM", "RANDOMBLOB"})


def volatile_findings(sql: str) -> list[Finding]:
    """Findings about a query that reads the clock (`'now'`, CURRENT_*, `date()`) or draws at random."""
    return list(dict.fromkeys(_findings(sql, list(significant(sql)))))


def _findings(sql: str, tokens: list[Token]) -> Iterator[Finding]:
    """One finding a place."""
    for at, token in enumerate(tokens):
        text = sql[token.start : token.end]
        word = text.upper() if token.kind is TokenKind.WORD else ""
        called = _text(sql, tokens, at + 1) == "("
        if token.kind in (TokenKind.STRING, TokenKind.QUOTED) and unquote(text).strip().lower() == "now":
            yield Finding(Reason.TIME_DEPENDENT, text)
        elif word in _CLOCK_WORDS:
            yield Finding(Reason.TIME_DEPENDENT, word)
        elif called and word in _CLOCK_FUNCTIONS and _arguments(sql, tokens, at + 1) <= _CLOCK_FUNCTIONS[word]:
            yield Finding(Reason.IMPLICIT_TIME, f"{word}()")
        elif called and word in _RANDOM_FUNCTIONS:
            yield Finding(Reason.RANDOM, f"{word}()")


def _arguments(sql: str, tokens: list[Token], opening: int) -> int:
    """Number of arguments between the parenthesis at `opening` and the one that closes it."""
    depth, commas = 0, 0
    for at in range(opening, len(tokens)):
        text = _text(sql, tokens, at)
        depth += {"(": 1, ")": -1}.get(text, 0)
        if depth == 0:
            return 0 if at == opening + 1 else commas + 1
        commas += depth == 1 and text == ","
    return commas + 1


def _text(sql: str, tokens: list[Token], at: int) -> str:
    """The text of the token at `at`, nothing beyond the end."""
    return sql[tokens[at].start : tokens[at].end] if at < len(tokens) else ""
