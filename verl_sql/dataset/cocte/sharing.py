"""Steps that do the same work are one step: a filter that a query needs twice is written once."""

import re

from sqlglot import exp

from verl_sql.dataset.cocte.nodes import Node, column, sql_of

_KEY = re.compile(r"#\d+")


def does_the_same(step: Node, select: Node) -> bool:
    """Whether an earlier step can stand for a new one; columns that it lacks are then added to it.

    Args:
        step: the earlier step's query, in keys.
        select: the new step's.
    """
    if not isinstance(step, exp.Select) or any("#" in str(n.this) for n in select.find_all(exp.Literal)):
        return False
    if not (_only_picks(step) and _only_picks(select)):
        return _numbered(step)[0] == _numbered(select)[0]
    (old, old_keys), (new, new_keys) = _numbered(_without_columns(step)), _numbered(_without_columns(select))
    if old != new:
        return False
    keys = dict(zip(new_keys, old_keys, strict=True))
    wanted = {item.alias: column(keys[item.this.table], item.this.name) for item in select.expressions}
    held = {item.alias.lower(): item.this for item in step.expressions}
    if any(held.get(name.lower(), node) != node for name, node in wanted.items()):
        return False
    missing = [(name, node) for name, node in wanted.items() if name.lower() not in held]
    for name, node in missing:
        step.append("expressions", exp.Alias(this=node, alias=column("", name).this))
    return True


def _only_picks(select: Node) -> bool:
    """Whether its output is columns of the rows that FROM and WHERE give."""
    more = ("group", "having", "distinct", "order", "limit", "offset")
    return not any(select.args.get(part) for part in more) and all(
        isinstance(item.this, exp.Column) and item.this.table for item in select.expressions
    )


def _without_columns(select: Node) -> Node:
    """The query without its output columns."""
    copy = select.copy()
    copy.set("expressions", [exp.Literal.number(1)])
    return copy


def _numbered(select: Node) -> tuple[str, list[str]]:
    """The query's text with its keys numbered in the order in which they appear, and the keys in that order."""
    text = sql_of(select)
    keys = list(dict.fromkeys(_KEY.findall(text)))
    return _KEY.sub(lambda match: f"#{keys.index(match.group())}", text), keys
