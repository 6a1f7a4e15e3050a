"""A query's tokens sorted into its clauses, by the text alone: no tree, so SQL that nothing can parse has clauses too.

Subqueries in parentheses stay in the clause they stand in; the branches of a set operation and the bodies of CTEs
each give their tokens to the clauses they have.
"""

from functools import lru_cache

from verl_sql.sqltext.tokens import sql_tokens

CLAUSES = ("select", "from", "where", "group by", "having", "order by", "limit")
"""The clauses, as Sparks of Tabular Reasoning counts them; joins belong to FROM, OFFSET to LIMIT."""

_SET_WORDS = frozenset({"union", "intersect", "except"})
_BEGINS = {"select": "select", "values": "select", "from": "from", "where": "where", "having": "having"}
_BEGINS |= {"limit": "limit", "group": "group by", "order": "order by"}


@lru_cache(maxsize=8192)
def clause_tokens(sql: str) -> dict[str, tuple[str, ...]]:
    """Tokens of each clause that `sql` has, without the clause's own keyword; treat the dict as read-only."""
    found: dict[str, list[str]] = {}
    _sort(sql_tokens(sql), found)
    return {clause: tuple(found[clause]) for clause in CLAUSES if clause in found}


def _sort(tokens: tuple[str, ...], found: dict[str, list[str]]) -> None:
    """Add the tokens of one statement, or of the inside of a parenthesised one, to their clauses."""
    pending = [tokens]
    while pending:
        current, clause, at = pending.pop(), "", 0
        while at < len(current):
            step, clause = _keyword(current, at, clause)
            if step:
                if clause:
                    found.setdefault(clause, [])
                at += step
                continue
            end = _closing(current, at) if current[at] == "(" else at
            if clause:
                found[clause].extend(current[at : end + 1])
            elif end > at:
                pending.append(current[at + 1 : end])
            at = end + 1


def _keyword(tokens: tuple[str, ...], at: int, clause: str) -> tuple[int, str]:
    """How many tokens the keyword at a place takes (0: none stands there) and the clause that follows it."""
    word = tokens[at]
    following = tokens[at + 1] if at + 1 < len(tokens) else ""
    if word in _SET_WORDS:
        return (2 if following == "all" else 1), ""
    if word == "window":
        return 1, ""
    if word in ("group", "order"):
        return (2, _BEGINS[word]) if following == "by" else (0, clause)
    if word == "from" and at >= 2 and tokens[at - 1] == "distinct" and tokens[at - 2] in ("is", "not"):
        return 0, clause
    return (1, _BEGINS[word]) if word in _BEGINS else (0, clause)


def _closing(tokens: tuple[str, ...], at: int) -> int:
    """Index of the parenthesis that closes the one at `at`; one past the last token when it never closes."""
    depth = 0
    for index in range(at, len(tokens)):
        depth += (tokens[index] == "(") - (tokens[index] == ")")
        if depth == 0:
            return index
    return len(tokens)
