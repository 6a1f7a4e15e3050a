"""How complex a query is, by its number of SQL constructs (Think2SQL §2.2: simple [0,7), medium [7,10), challenging).

The paper does not define "construct". Here each of these counts one: a SELECT (nested ones and the arms of set
operations each), a clause (WHERE, GROUP BY, HAVING, ORDER BY, LIMIT, DISTINCT), a join, an aggregate call, a predicate
outside join conditions, and a set operation.
"""

from enum import StrEnum

from sqlglot import exp

from verl_sql.sqltext.parse import parse_sql

MEDIUM_FROM = 7
CHALLENGING_FROM = 10
_CLAUSES = (exp.Where, exp.Group, exp.Having, exp.Order, exp.Limit, exp.Distinct)
_COUNTED = (exp.Select, exp.Join, exp.AggFunc, exp.SetOperation, *_CLAUSES)


class Complexity(StrEnum):
    """The paper's tiers."""

    SIMPLE = "simple"
    """Fewer than 7 constructs."""
    MEDIUM = "medium"
    """7 to 9."""
    CHALLENGING = "challenging"
    """10 and more."""
    UNKNOWN = "unknown"
    """The query could not be parsed."""


def count_constructs(sql: str) -> int | None:
    """The number of constructs of a query; None when it could not be parsed."""
    tree = parse_sql(sql).tree
    if tree is None:
        return None
    return sum(isinstance(node, _COUNTED) or _is_condition(node) for node in tree.walk())


def complexity(sql: str) -> Complexity:
    """The tier of a query."""
    constructs = count_constructs(sql)
    if constructs is None:
        return Complexity.UNKNOWN
    if constructs < MEDIUM_FROM:
        return Complexity.SIMPLE
    return Complexity.MEDIUM if constructs < CHALLENGING_FROM else Complexity.CHALLENGING


def _is_condition(node: exp.Expression) -> bool:
    """Whether a node is a predicate that is not the condition of a join."""
    return isinstance(node, exp.Predicate) and not isinstance(node.parent, exp.Join)
