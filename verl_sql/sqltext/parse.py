"""SQL text to sqlglot tree, once per distinct query, within bounds of time and depth.

Trees are for looking: nothing here is ever turned back into SQL that runs.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlglot
from func_timeout import FunctionTimedOut, func_timeout
from sqlglot import exp
from sqlglot.errors import SqlglotError

from verl_sql.sqltext.scan import TokenKind, significant
from verl_sql.sqltext.tokens import without_comments

Node = Any
"""A node of a tree; its classes differ between the allowed versions of sqlglot, so they are not spelled out."""

MAX_SECONDS = 2.0
"""Time one parse may take."""
MAX_DEPTH = 200
"""Parentheses inside parentheses beyond which a query is not parsed."""
MAX_CHARS = 200_000
"""Length beyond which a query is not parsed."""
_PLAIN_DEPTH, _PLAIN_CHARS = 8, 4000  # below both, parsing was measured to end within milliseconds: no guard thread


@dataclass(frozen=True, slots=True)
class ParsedSql:
    """A query's tree, or why there is none; exactly one of the two is set.

    Attributes:
        tree: the statement's root; shared between callers, so never change it.
        error: one line.
    """

    tree: Node | None
    error: str | None


@lru_cache(maxsize=8192)
def parse_sql(sql: str) -> ParsedSql:
    """Parse one SQLite statement with sqlglot; never raises.

    No tree is given for text that is empty, holds several statements, nests too deep, takes too long or that sqlglot
    does not understand (it accepts some queries that SQLite rejects and the other way round).
    """
    depth = nesting(sql)
    if len(sql) > MAX_CHARS or depth > MAX_DEPTH:
        return ParsedSql(None, f"not parsed: {len(sql)} characters, {depth} parentheses deep")
    try:
        if depth <= _PLAIN_DEPTH and len(sql) <= _PLAIN_CHARS:
            return _parse(sql)
        return func_timeout(MAX_SECONDS, _parse, args=(sql,))
    except FunctionTimedOut:
        return ParsedSql(None, f"not parsed within {MAX_SECONDS:g} s")


def nesting(sql: str) -> int:
    """The greatest number of parentheses open at once, outside quotes and comments."""
    deepest = depth = 0
    for token in significant(sql):
        if token.kind is TokenKind.PUNCT:
            char = sql[token.start]
            depth += (char == "(") - (char == ")" and depth > 0)
            deepest = max(deepest, depth)
    return deepest


def _parse(sql: str) -> ParsedSql:
    """Parse without a guard of time, and without comments: sqlglot rejects one between `GROUP` and `BY`."""
    text = without_comments(sql) if "--" in sql or "/*" in sql else sql
    try:
        statements = [
            s for s in sqlglot.parse(text, dialect="sqlite") if s is not None and not isinstance(s, exp.Semicolon)
        ]
    except SqlglotError as error:
        return ParsedSql(None, _first_line(error))
    except RecursionError:
        return ParsedSql(None, "not parsed: nested too deep")
    except Exception as error:  # sqlglot has raised AttributeError, TypeError and IndexError on text that is no SQL
        return ParsedSql(None, f"not parsed: {type(error).__name__}")
    if len(statements) != 1:
        return ParsedSql(None, f"{len(statements)} statements")
    return ParsedSql(statements[0], None)


def _first_line(error: SqlglotError) -> str:
    """sqlglot's message without its excerpt."""
    return (str(error).splitlines() or [type(error).__name__])[0]
