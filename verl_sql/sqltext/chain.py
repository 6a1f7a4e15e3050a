"""Chains of CTEs (Reward-SQL, Definition 2): `WITH c1 AS (q1), …, cK AS (qK) qf` split into steps by the text alone.

The splitter reads tokens, never a tree, so what runs later is what the policy wrote, character for character.
"""

from dataclasses import dataclass
from itertools import chain

from verl_sql.sqltext.scan import Token, TokenKind, significant, unquote

_QUERY_WORDS = frozenset({"SELECT", "VALUES", "INSERT", "UPDATE", "DELETE", "REPLACE"})


@dataclass(frozen=True, slots=True)
class Step:
    """One CTE of a chain; a query without CTE is one step, itself, whose name is empty.

    Attributes:
        index: position in the chain, from 0.
        name: the CTE's name without its quotes.
        sql: the body, without the parentheses around it.
        start: first character of the whole item `name AS (…)` in the text that was split.
        end: one past the item's last character.
    """

    index: int
    name: str
    sql: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Chain:
    """A query as its steps and its final query.

    Attributes:
        text: the text that was split; every span counts its characters.
        steps: the CTEs in order; for a query without CTE the one step that is the query.
        final_sql: the query after the last CTE, without a trailing `;`; empty when there is no CTE, or no final query.
        final_start: first character of the final query.
        final_end: one past its last character.
        recursive: whether the chain says `WITH RECURSIVE`.
        complete: False when the text breaks off or does not follow the grammar; then `steps` holds the whole ones.
    """

    text: str
    steps: tuple[Step, ...]
    final_sql: str
    final_start: int
    final_end: int
    recursive: bool
    complete: bool

    @property
    def has_ctes(self) -> bool:
        """Whether the steps are CTEs (False: none at all, or the one step that is the query itself)."""
        return bool(self.steps) and self.steps[0].sql != self.text[self.steps[0].start : self.steps[0].end]


def split_chain(sql: str) -> Chain:
    """Split `sql` into its top-level CTEs and the final query. Never raises.

    Args:
        sql: one SQL statement, as the policy wrote it; spans of the result count its characters.

    Returns:
        The chain. Spans of steps and of the final query do not overlap; CTEs nested inside a step are not split.
    """
    tokens = list(significant(sql))
    if not tokens or _word(sql, tokens[0]) != "WITH":
        return _single(sql, tokens)
    recursive = len(tokens) > 1 and _word(sql, tokens[1]) == "RECURSIVE"
    steps: list[Step] = []
    at = 2 if recursive else 1
    while (item := _read_item(sql, tokens, at, len(steps))) is not None:
        step, at = item
        steps.append(step)
        if not _is(sql, tokens, at, ","):
            return _finish(sql, tokens, at, tuple(steps), recursive)
        at += 1
    return Chain(sql, tuple(steps), "", len(sql), len(sql), recursive, complete=False)


def count_steps(sql: str) -> int:
    """The number of steps that `split_chain` finds, without reading all of a query that has no CTE. Never raises."""
    tokens = significant(sql)
    first = next(tokens, None)
    if first is None:
        return 0
    if _word(sql, first) == "WITH":
        return len(split_chain(sql).steps)
    return int(any(t.kind is not TokenKind.PUNCT or sql[t.start] != ";" for t in chain((first,), tokens)))


def prefix_sql(chain: Chain, index: int) -> str:
    """`WITH c1 AS (…), …, cj AS (…) SELECT * FROM cj` for step j = `index`, cut from the original text.

    Raises:
        IndexError: `index` names no step.
    """
    step = chain.steps[index]
    if not chain.has_ctes:
        return step.sql
    written_name = next(significant(chain.text, step.start))
    head = "WITH RECURSIVE" if chain.recursive else "WITH"
    items = chain.text[chain.steps[0].start : step.end]
    return f"{head} {items} SELECT * FROM {chain.text[written_name.start : written_name.end]}"


def _single(sql: str, tokens: list[Token]) -> Chain:
    """The chain of a query without CTE: one step, itself."""
    start, end = _body_span(sql, tokens, 0)
    if start == end:
        return Chain(sql, (), "", len(sql), len(sql), recursive=False, complete=False)
    complete = _word(sql, tokens[0]) in _QUERY_WORDS and _is_whole(sql, tokens)
    return Chain(sql, (Step(0, "", sql[start:end], start, end),), "", end, end, recursive=False, complete=complete)


def _finish(sql: str, tokens: list[Token], at: int, steps: tuple[Step, ...], recursive: bool) -> Chain:
    """The chain whose final query begins at token `at`."""
    start, end = _body_span(sql, tokens, at)
    complete = start < end and _word(sql, tokens[at]) in _QUERY_WORDS and _is_whole(sql, tokens[at:])
    return Chain(sql, steps, sql[start:end], start, end, recursive, complete)


def _read_item(sql: str, tokens: list[Token], at: int, index: int) -> tuple[Step, int] | None:
    """One `name [(columns)] AS [[NOT] MATERIALIZED] (body)` at token `at`, and the position after it."""
    if at >= len(tokens) or tokens[at].kind is TokenKind.PUNCT or tokens[at].open:
        return None
    name, at = tokens[at], at + 1
    if _is(sql, tokens, at, "("):
        at = _after_parentheses(sql, tokens, at)
    if not _is(sql, tokens, at, "AS"):
        return None
    at += 1
    at += _is(sql, tokens, at, "NOT")
    at += _is(sql, tokens, at, "MATERIALIZED")
    opening, at = at, _after_parentheses(sql, tokens, at)
    if not _is(sql, tokens, opening, "(") or not _is(sql, tokens, at - 1, ")"):
        return None
    body = sql[tokens[opening].end : tokens[at - 1].start].strip()
    return Step(index, unquote(sql[name.start : name.end]), body, name.start, tokens[at - 1].end), at


def _after_parentheses(sql: str, tokens: list[Token], at: int) -> int:
    """The position after the parenthesis that closes the one at `at`; len + 1 when none does."""
    depth = 0
    for position in range(at, len(tokens)):
        depth += {"(": 1, ")": -1}.get(sql[tokens[position].start : tokens[position].end], 0)
        if depth <= 0:
            return position + 1
    return len(tokens) + 1


def _body_span(sql: str, tokens: list[Token], at: int) -> tuple[int, int]:
    """Characters from token `at` to the last token that is no trailing `;`; an empty span when there is none."""
    last = len(tokens) - 1
    while last >= at and sql[tokens[last].start] == ";" and tokens[last].kind is TokenKind.PUNCT:
        last -= 1
    return (tokens[at].start, tokens[last].end) if last >= at else (len(sql), len(sql))


def _is_whole(sql: str, tokens: list[Token]) -> bool:
    """Whether every quote is closed and the parentheses balance."""
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(sql[token.start : token.end], 0)
        if token.open or depth < 0:
            return False
    return depth == 0


def _word(sql: str, token: Token) -> str:
    """The token's text in upper case if it is a bare word, else nothing."""
    return sql[token.start : token.end].upper() if token.kind is TokenKind.WORD else ""


def _is(sql: str, tokens: list[Token], at: int, text: str) -> bool:
    """Whether the token at `at` exists and is `text`, a keyword or a punctuation mark."""
    return 0 <= at < len(tokens) and sql[tokens[at].start : tokens[at].end].upper() == text
