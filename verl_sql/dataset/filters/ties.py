"""Golds whose LIMIT cuts through rows that their ORDER BY does not tell apart, or has no ORDER BY at all.

Such a query may return other rows elsewhere. Whether it does on this database is decided by running it twice with all
result columns added as last sort keys, once upwards and once downwards: if the rows at the cut are tied, the smallest
of them come in one run and the largest in the other, and the results are equal only if it makes no difference.
The keys are inserted into the original text; nothing else of it changes, and neither run is ever used for scoring.
"""

from dataclasses import dataclass

from verl_sql.dataset.reasons import Reason
from verl_sql.sqltext.scan import Token, TokenKind, significant


@dataclass(frozen=True, slots=True)
class TieProbe:
    """Two queries that agree exactly when a LIMIT's cut is determined, and what it means if they do not."""

    upwards: str
    downwards: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class _Cut:
    """One LIMIT: where it stands, how many columns its SELECT has, whether it is ordered, whether in a subquery."""

    at: int
    columns: int
    ordered: bool
    nested: bool


def tie_probes(sql: str, n_columns: int) -> list[TieProbe]:
    """The probes of a query: one for its own LIMIT, one for those of its subqueries; none without such LIMITs.

    A subquery's LIMIT is left out when its columns cannot be counted (`SELECT *`).

    Args:
        sql: the gold query.
        n_columns: number of its result columns, as its execution gave them.
    """
    cuts = _cuts(sql, list(significant(sql)), n_columns)
    outer, inner = [cut for cut in cuts if not cut.nested], [cut for cut in cuts if cut.nested]
    probes = []
    if outer:
        reason = Reason.TIED_LIMIT if all(cut.ordered for cut in outer) else Reason.UNORDERED_LIMIT
        probes.append(TieProbe(_with_keys(sql, outer, ""), _with_keys(sql, outer, " DESC"), reason))
    if inner:
        probes.append(TieProbe(_with_keys(sql, inner, ""), _with_keys(sql, inner, " DESC"), Reason.NESTED_TIE))
    return probes


def _with_keys(sql: str, cuts: list[_Cut], direction: str) -> str:
    """The query with every result column of every cut SELECT as a last sort key."""
    for cut in sorted(cuts, key=lambda cut: cut.at, reverse=True):
        keys = ", ".join(f"{number}{direction}" for number in range(1, cut.columns + 1))
        sql = f"{sql[: cut.at]}{', ' if cut.ordered else ' ORDER BY '}{keys} {sql[cut.at :]}"
    return sql


def _cuts(sql: str, tokens: list[Token], n_columns: int) -> list[_Cut]:
    """Every LIMIT of the query, at every depth of parentheses."""
    levels: list[list[int]] = [[]]
    found: list[_Cut] = []
    for at, token in enumerate(tokens):
        text = sql[token.start : token.end]
        if text == "(":
            levels.append([])
        elif text == ")" and len(levels) > 1:
            levels.pop()
        elif token.kind is TokenKind.WORD and text.upper() == "LIMIT":
            columns = n_columns if len(levels) == 1 else _count_columns(sql, [tokens[i] for i in levels[-1]])
            if columns:
                ordered = "ORDER" in _words(sql, tokens, levels[-1])
                found.append(_Cut(token.start, columns, ordered, nested=len(levels) > 1))
        levels[-1].append(at)
    return found


def _count_columns(sql: str, tokens: list[Token]) -> int:
    """Number of columns in the first SELECT list of one level; 0 when a `*` may stand for several."""
    words = [sql[t.start : t.end].upper() for t in tokens]
    if "SELECT" not in words:
        return 0
    start = words.index("SELECT") + 1
    selected = words[start : words.index("FROM", start) if "FROM" in words[start:] else len(words)]
    for position, word in enumerate(selected):
        if word == "*" and (position == 0 or selected[position - 1] in (",", ".", "DISTINCT")):
            return 0
    return selected.count(",") + 1


def _words(sql: str, tokens: list[Token], positions: list[int]) -> list[str]:
    """The words of one level since its last SELECT, in upper case."""
    words = [sql[tokens[i].start : tokens[i].end].upper() for i in positions if tokens[i].kind is TokenKind.WORD]
    last = len(words) - 1 - words[::-1].index("SELECT") if "SELECT" in words else 0
    return words[last:]
