"""SQL as a sequence of comparable tokens: what bigrams, edit counts and clause scores count.

Keywords and bare names are lower-cased, comments and a trailing `;` are dropped, names in backticks or brackets lose
their quotes (one that spells a clause's keyword gets double quotes instead), and two-character operators and numbers
are one token. Literals in single quotes and anything in double
quotes (a name or a string, only the schema knows) stay character for character. Any text gives tokens; none raises.
"""

import re
from functools import lru_cache

from verl_sql.sqltext.scan import Token, TokenKind, scan, significant, unquote

_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_OPERATORS = re.compile(r"->>|->|<=|>=|<>|!=|==|\|\||<<|>>")

CLAUSE_WORDS = frozenset(
    {"with", "select", "from", "where", "group", "having", "window", "order", "limit", "offset", "values"}
    | {"union", "intersect", "except"}
)
"""Words that begin a clause."""


@lru_cache(maxsize=16384)
def sql_tokens(sql: str) -> tuple[str, ...]:
    """The normalised tokens of `sql`; equal for texts that differ in keyword case, white space or comments only."""
    tokens: list[str] = []
    end = 0
    for token in significant(sql):
        if token.start >= end:
            text, end = _normalised(sql, token)
            tokens.append(text)
    while tokens and tokens[-1] == ";":
        tokens.pop()
    return tuple(tokens)


def without_comments(sql: str) -> str:
    """`sql` with each comment replaced by one space, everything else character for character, ends stripped."""
    return "".join(" " if t.kind is TokenKind.COMMENT else sql[t.start : t.end] for t in scan(sql)).strip()


def _normalised(sql: str, token: Token) -> tuple[str, int]:
    """A token's comparable text and where it ends: numbers and operators may swallow the tokens after them."""
    text = sql[token.start : token.end]
    if text[0] in "`[":
        name = unquote(text).lower()
        return (f'"{name}"' if name in CLAUSE_WORDS or not name else name), token.end
    if token.kind in (TokenKind.STRING, TokenKind.QUOTED):
        return text, token.end
    pattern = _NUMBER if text[0].isdigit() or text[0] == "." else _OPERATORS
    match = pattern.match(sql, token.start)
    if match and match.end() > token.end:
        return match.group().lower(), match.end()
    return text.lower(), token.end
