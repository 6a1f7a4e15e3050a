"""How many stages of work a query has, counted on its tree and independently of any rewriting.

A stage is a filter, a join, a grouping or aggregate, a filter of groups, the removal of repeats, a cut to the first
rows, a compound of queries, or a nested query. Picking, computing and sorting output columns is no stage of its own:
the final query of a chain does it.
"""

from sqlglot import exp

from verl_sql.dataset.cocte.block import is_join_condition
from verl_sql.dataset.cocte.nodes import (
    Node,
    aggregates,
    conjuncts,
    from_clause,
    local_nodes,
    unwrap,
)


def count_stages(query: Node) -> int:
    """Stages of a resolved query, those of its nested queries included."""
    query = unwrap(query)
    own = query.args.get("with_") or query.args.get("with")
    inside = sum(max(1, count_stages(cte.this)) for cte in own.expressions) if own else 0
    if isinstance(query, exp.SetOperation):
        cut = query.args.get("limit") is not None
        return inside + 1 + cut + count_stages(query.left) + count_stages(query.right)
    return inside + _own_stages(query) + _nested_stages(query)


def _own_stages(select: Node) -> int:
    """Stages of one SELECT without those inside it."""
    where = select.args.get("where")
    filters = [c for c in conjuncts(where.this if where else None) if not is_join_condition(c)]
    values = [*select.expressions, *([select.args["order"]] if select.args.get("order") else [])]
    grouped = select.args.get("group") or any(aggregates(value) for value in values)
    repeats = select.args.get("distinct") and not _sorts_by_hidden(select)
    parts = (filters, select.args.get("joins"), grouped, select.args.get("having"), repeats, select.args.get("limit"))
    return sum(bool(part) for part in parts)


def _sorts_by_hidden(select: Node) -> bool:
    """Whether the sort keys are no output columns: repeats are then removed where the rows are sorted, at the end."""
    shown = [item.this for item in select.expressions]
    order = select.args.get("order")
    return any(ordered.this not in shown for ordered in (order.expressions if order else []))


def _nested_stages(select: Node) -> int:
    """Stages of the queries nested in one SELECT: of a derived table only what it does beyond picking columns."""
    total = 0
    origin = from_clause(select)
    sources = [origin.this] if origin is not None else []
    for source in (*sources, *(join.this for join in select.args.get("joins") or [])):
        total += count_stages(source.this) if isinstance(source, exp.Subquery) else 0
    for clause in ("where", "having", "order"):
        total += _in_clause(select.args.get(clause))
    return total + sum(_in_clause(item) for item in select.expressions)


def _in_clause(node: Node | None) -> int:
    """Stages of the queries nested in one clause, at least one each."""
    if node is None:
        return 0
    return sum(
        max(1, count_stages(found)) for found in local_nodes(node) if isinstance(found, exp.Select | exp.SetOperation)
    )
