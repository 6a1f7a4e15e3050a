"""Give the keys of a query readable names: a table is called by its own name, or by its alias where two are alike."""

from collections.abc import Mapping

from sqlglot import exp

from verl_sql.dataset.cocte.nodes import Node, from_clause, identifier, is_query, local_nodes, sql_of


def render(query: Node, aliases: Mapping[str, str]) -> str:
    """The query as SQL text on one line.

    Args:
        query: a query in keys.
        aliases: what the original query called the entry behind a key, where that is known.
    """
    tree = query.copy()
    _readable(tree, {}, aliases)
    return sql_of(tree)


def _readable(query: Node, outer: Mapping[str, str], aliases: Mapping[str, str]) -> None:
    """Rename the keys of one query, those of the queries around it being known."""
    if isinstance(query, exp.SetOperation):
        _readable(query.left, outer, aliases)
        _readable(query.right, outer, aliases)
        return
    sources = _sources(query)
    shown = dict(outer)
    for source in sources:
        shown[source.alias] = _shown(source, sources, set(outer.values()) | set(shown.values()), aliases)
    alone = sources[0].alias if len(sources) == 1 else None
    for clause in [part for value in query.args.values() for part in (value if isinstance(value, list) else [value])]:
        if isinstance(clause, exp.Expression):
            _rename(clause, shown, alone, aliases)
    for item in list(query.expressions):
        if isinstance(item.this, exp.Column) and item.this.name == item.alias:
            item.replace(item.this)
    for source in sources:
        name = shown[source.alias]
        same = name.lower() == source.name.lower()
        source.set("alias", None if same else exp.TableAlias(this=identifier(name)))


def _rename(clause: Node, shown: Mapping[str, str], alone: str | None, aliases: Mapping[str, str]) -> None:
    """Readable qualifiers for the columns of one clause; none where only one table is in sight."""
    for node in list(local_nodes(clause)):
        if is_query(node):
            _readable(node, shown, aliases)
        elif isinstance(node, exp.Column) and node.table:
            node.set("table", None if node.table == alone else identifier(shown[node.table]))


def _sources(query: Node) -> list[Node]:
    """The tables of a SELECT's FROM clause."""
    origin = from_clause(query)
    return [*([origin.this] if origin is not None else []), *(join.this for join in query.args.get("joins") or [])]


def _shown(source: Node, sources: list[Node], taken: set[str], aliases: Mapping[str, str]) -> str:
    """The table's name if nothing else in sight has it, else its alias, else one with a number."""
    used = {name.lower() for name in taken}
    alike = [other for other in sources if other.name.lower() == source.name.lower()]
    wanted = source.name if len(alike) == 1 else aliases.get(source.alias) or source.name
    candidates = (wanted, *(f"{wanted}_{number}" for number in range(2, len(used) + 3)))
    return next(name for name in candidates if name.lower() not in used)
