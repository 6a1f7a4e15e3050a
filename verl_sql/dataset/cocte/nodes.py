"""Small tools on sqlglot trees that the conversion shares: walks that respect nesting, identifiers, SQL text.

Inside the conversion every table of a FROM clause has a key as its alias, unique in the whole query, and every column
is `key.column`. `render` gives the keys readable names again.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.sqlite import SQLite

Node = Any
"""A node of a tree, see `verl_sql.sqltext.parse`."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEYWORDS = frozenset(
    """ABORT ACTION ADD AFTER ALL ALTER ALWAYS ANALYZE AND AS ASC ATTACH AUTOINCREMENT BEFORE BEGIN BETWEEN BY CASCADE
    CASE CAST CHECK COLLATE COLUMN COMMIT CONFLICT CONSTRAINT CREATE CROSS CURRENT CURRENT_DATE CURRENT_TIME
    CURRENT_TIMESTAMP DATABASE DEFAULT DEFERRABLE DEFERRED DELETE DESC DETACH DISTINCT DO DROP EACH ELSE END ESCAPE
    EXCEPT EXCLUDE EXCLUSIVE EXISTS EXPLAIN FAIL FILTER FIRST FOLLOWING FOR FOREIGN FROM FULL GENERATED GLOB GROUP
    GROUPS HAVING IF IGNORE IMMEDIATE IN INDEX INDEXED INITIALLY INNER INSERT INSTEAD INTERSECT INTO IS ISNULL JOIN
    KEY LAST LEFT LIKE LIMIT MATCH MATERIALIZED NATURAL NO NOT NOTHING NOTNULL NULL NULLS OF OFFSET ON OR ORDER OTHERS
    OUTER OVER PARTITION PLAN PRAGMA PRECEDING PRIMARY QUERY RAISE RANGE RECURSIVE REFERENCES REGEXP REINDEX RELEASE
    RENAME REPLACE RESTRICT RETURNING RIGHT ROLLBACK ROW ROWS SAVEPOINT SELECT SET TABLE TEMP TEMPORARY THEN TIES TO
    TRANSACTION TRIGGER TRUE FALSE UNBOUNDED UNION UNIQUE UPDATE USING VACUUM VALUES VIEW VIRTUAL WHEN WHERE WINDOW
    WITH WITHOUT""".split()  # noqa: SIM905
)
_NEGATED = {exp.In: "IN", exp.Like: "LIKE", exp.Between: "BETWEEN", exp.Is: "IS", exp.Glob: "GLOB"}
_AGGREGATE_NAMES = frozenset({"total", "json_group_array", "json_group_object"})


class Backticks(SQLite):
    """SQLite that quotes odd names in backticks: a misspelt name in double quotes would silently be a string."""

    class Tokenizer(SQLite.Tokenizer):
        """The first pair of marks is the one written."""

        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`", '"', ("[", "]")]

    class Generator(SQLite.Generator):  # type: ignore[misc,valid-type]
        """Writes `x NOT IN …` rather than `NOT x IN …`."""

        def not_sql(self, expression: Node) -> str:
            """NOT, inside the comparison where SQL has a word for it."""
            inner = expression.this
            left, whole = self.sql(inner, "this"), self.sql(inner)
            for kind, word in _NEGATED.items():
                if isinstance(inner, kind) and whole.startswith(f"{left} {word} "):
                    rest = whole[len(left) + len(word) + 2 :]
                    return f"{left} IS NOT {rest}" if kind is exp.Is else f"{left} NOT {word} {rest}"
            return super().not_sql(expression)


def sql_of(node: Node) -> str:
    """The node as SQLite text on one line, without comments."""
    return node.sql(dialect=Backticks, comments=False)


def is_keyword(name: str) -> bool:
    """Whether SQLite reserves the name."""
    return name.upper() in _KEYWORDS


def identifier(name: str) -> Node:
    """An identifier, quoted where SQLite needs it."""
    return exp.Identifier(this=name, quoted=not _PLAIN_NAME.fullmatch(name) or is_keyword(name))


def column(key: str, name: str) -> Node:
    """`key.name`; without a key the bare name."""
    table = exp.Identifier(this=key, quoted=False) if key else None
    return exp.Column(this=identifier(name), table=table)


def table(name: str, key: str) -> Node:
    """A table under a key."""
    return exp.Table(this=identifier(name), alias=exp.TableAlias(this=exp.Identifier(this=key, quoted=False)))


def from_clause(select: Node) -> Node | None:
    """The FROM clause, whatever the version of sqlglot calls it."""
    return select.args.get("from_") or select.args.get("from")


def unwrap(query: Node) -> Node:
    """A query without the parentheses around it."""
    while isinstance(query, exp.Subquery) and not query.alias:
        query = query.this
    return query


def is_query(node: Node) -> bool:
    """Whether the node is a SELECT or a compound of them."""
    return isinstance(node, exp.Select | exp.SetOperation)


def local_nodes(root: Node) -> Iterator[Node]:
    """`root` and what is below it, not going into nested queries; those are given themselves, as Select or compound."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        if not is_query(node):
            stack.extend(reversed(list(node.iter_expressions())))


def nested_queries(root: Node) -> list[Node]:
    """The outermost queries inside an expression, in their order."""
    return [node for node in local_nodes(root) if is_query(node)]


def own_keys(query: Node) -> set[str]:
    """Keys of every FROM clause inside a query."""
    sources = query.find_all(exp.Table, exp.Subquery)
    return {source.alias for source in sources if source.alias}


def outer_keys(node: Node) -> set[str]:
    """Keys that the node's columns use and that no FROM clause inside it defines."""
    used = {found.table for found in node.find_all(exp.Column) if found.table}
    return used - own_keys(node)


def is_correlated(query: Node) -> bool:
    """Whether a nested query uses a column of a query around it."""
    return bool(outer_keys(query))


def is_aggregate(node: Node) -> bool:
    """Whether the node is the call of an aggregate function, not of a window function."""
    if isinstance(node.parent, exp.Window) and node.arg_key == "this":
        return False
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower() in _AGGREGATE_NAMES
    return isinstance(node, exp.AggFunc) and not _is_window_only(node)


def _is_window_only(node: Node) -> bool:
    """Functions that exist only with OVER, which sqlglot counts among the aggregates; its parent is then a window."""
    return isinstance(node.parent, exp.Filter) and isinstance(node.parent.parent, exp.Window)


def aggregates(root: Node) -> list[Node]:
    """Aggregate calls in an expression, nested queries left out."""
    return [node for node in local_nodes(root) if is_aggregate(node)]


def has_window(root: Node) -> bool:
    """Whether the expression holds a window function."""
    return any(isinstance(node, exp.Window) for node in local_nodes(root))


def conjuncts(condition: Node | None) -> list[Node]:
    """The parts of a condition that AND joins."""
    if condition is None:
        return []
    if isinstance(condition, exp.And):
        return [*conjuncts(condition.this), *conjuncts(condition.expression)]
    if isinstance(condition, exp.Paren) and isinstance(condition.this, exp.And):
        return conjuncts(condition.this)
    return [condition]


def conjunction(parts: Iterable[Node]) -> Node | None:
    """The parts joined by AND; None without any."""
    found = list(parts)
    return exp.and_(*found, copy=False) if found else None


def replaced(root: Node, change: Callable[[Node, bool], Node | None]) -> Node:
    """A copy of the tree in which `change(node, nested)` may put another node, top down; None leaves a node alone.

    `nested` tells whether the node stands inside a nested query.
    """
    return _replaced(root.copy(), change, False)


def _replaced(node: Node, change: Callable[[Node, bool], Node | None], nested: bool) -> Node:
    new = change(node, nested)
    if new is not None:
        return _fitting(node, new)
    inside = nested or is_query(node)
    for child in list(node.iter_expressions()):
        other = _replaced(child, change, inside)
        if other is not child:
            child.replace(other)
    return node


def _fitting(old: Node, new: Node) -> Node:
    """The new node, in parentheses where it is an operator that becomes another operator's operand."""
    operand = isinstance(old.parent, exp.Binary | exp.Unary | exp.Between | exp.In)
    return exp.Paren(this=new) if operand and isinstance(new, exp.Binary | exp.Connector | exp.Between) else new
