"""Bind every name of a query as SQLite does: tables to keys, columns to `key.column`, loose double quotes to strings.

After this no bare name is left, stars are written out and every output column has a name of its own, so that parts of
the query can move without changing their meaning. sqlglot's own qualifier takes `"Male"` for a column.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from verl_sql.database.introspect import DatabaseSchema
from verl_sql.dataset.cocte.names import value_name
from verl_sql.dataset.cocte.nodes import (
    Node,
    column,
    from_clause,
    identifier,
    is_query,
    local_nodes,
    unwrap,
)
from verl_sql.dataset.cocte.reasons import ChainOutcome, Unconvertible

_ROWID = ("rowid", "oid", "_rowid_")


@dataclass(frozen=True, slots=True)
class Origin:
    """One entry of a FROM clause.

    Attributes:
        key: its unique alias in the resolved tree.
        name: table or CTE; the alias, for a derived table.
        alias: what the query calls it.
        columns: its columns in order, as the schema or the inner query spells them.
        kind: "table", "cte" or "derived".
        primary_key: the table's key columns.
    """

    key: str
    name: str
    alias: str
    columns: tuple[str, ...]
    kind: str
    primary_key: tuple[str, ...] = ()

    def spelled(self, name: str) -> str | None:
        """The column of that name as the schema spells it, or None."""
        lower = name.lower()
        found = next((c for c in self.columns if c.lower() == lower), None)
        return found or (name if self.kind == "table" and lower in _ROWID else None)


@dataclass(slots=True)
class _Scope:
    """What is visible in one SELECT; `parent` is the query around it."""

    parent: "_Scope | None"
    ctes: Mapping[str, tuple[str, ...]]
    origins: list[Origin] = field(default_factory=list)
    aliases: dict[str, Node] = field(default_factory=dict)


class Resolver:
    """Resolves one tree in place; `origins` then holds every entry of every FROM clause by its key."""

    def __init__(self, schema: DatabaseSchema) -> None:
        """Nothing resolved yet."""
        self.origins: dict[str, Origin] = {}
        self._tables = {table.name.lower(): table for table in schema.tables}

    def query(
        self, node: Node, ctes: Mapping[str, tuple[str, ...]] | None = None, parent: _Scope | None = None
    ) -> tuple[str, ...]:
        """Resolve a query; returns the names of its output columns.

        Raises:
            Unconvertible: a name that nothing in sight has, or a construct that is not supported.
        """
        visible = self._with(node, ctes or {})
        if isinstance(node, exp.SetOperation):
            outputs = self.query(unwrap(node.left), visible, parent)
            self.query(unwrap(node.right), visible, parent)
            self._compound_order(node, outputs)
            return outputs
        if isinstance(node, exp.Select):
            return self._select(node, _Scope(parent, visible))
        raise Unconvertible(ChainOutcome.UNSUPPORTED, f"a {type(node).__name__} is no query of ours")

    def _with(self, node: Node, ctes: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
        """The CTEs visible inside `node`, its own among them."""
        own = node.args.get("with_") or node.args.get("with")
        if own is None:
            return ctes
        if own.args.get("recursive"):
            raise Unconvertible(ChainOutcome.UNSUPPORTED, "recursive CTE")
        visible = dict(ctes)
        for cte in own.expressions:
            if cte.args["alias"].args.get("columns"):
                raise Unconvertible(ChainOutcome.UNSUPPORTED, "CTE with a column list")
            visible[cte.alias.lower()] = self.query(unwrap(cte.this), visible)
        return visible

    def _select(self, node: Node, scope: _Scope) -> tuple[str, ...]:
        """One SELECT: sources, join conditions, output columns, then the clauses that may name those."""
        origin = from_clause(node)
        joins = node.args.get("joins") or []
        if origin is not None:
            self._source(origin.this, scope)
        hidden = [self._join(join, scope) for join in joins]
        for join in joins:
            self._clause(join.args.get("on"), scope)
        self._stars(node, scope, {name for names in hidden for name in names})
        outputs = self._outputs(node, scope)
        for part in ("where", "group", "having", "limit", "offset"):
            self._clause(node.args.get(part), scope)
        self._group_positions(node)
        self._order(node, scope)
        return outputs

    def _source(self, node: Node, scope: _Scope) -> None:
        """Give one entry of a FROM clause its key."""
        key = f"#{len(self.origins)}"
        if node.args.get("joins") or (node.args.get("alias") and node.args["alias"].args.get("columns")):
            raise Unconvertible(ChainOutcome.UNSUPPORTED, "joins in parentheses, or a column list")
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not node.args.get("db"):
            origin = self._named(key, node, scope)
        elif isinstance(node, exp.Subquery) and is_query(unwrap(node.this)):
            self.origins[key] = Origin(key, "", "", (), "derived")  # reserves the key
            outputs = self.query(unwrap(node.this), scope.ctes)
            origin = Origin(key, node.alias or "row", node.alias, outputs, "derived")
        else:
            raise Unconvertible(ChainOutcome.UNSUPPORTED, f"a {type(node).__name__} in FROM")
        self.origins[key] = origin
        scope.origins.append(origin)
        node.set("alias", exp.TableAlias(this=exp.Identifier(this=key, quoted=False)))

    def _named(self, key: str, node: Node, scope: _Scope) -> Origin:
        """A CTE or a base table."""
        name = node.name.lower()
        if name in scope.ctes:
            return Origin(key, name, node.alias or node.name, scope.ctes[name], "cte")
        if name not in self._tables:
            raise Unconvertible(ChainOutcome.UNRESOLVED, f"no table {node.name}")
        table = self._tables[name]
        columns = tuple(c.name for c in table.columns)
        return Origin(key, table.name, node.alias or node.name, columns, "table", table.primary_key)

    def _join(self, join: Node, scope: _Scope) -> list[str]:
        """Register a joined source; NATURAL and USING become ON. Returns the keyed columns that `*` shows once only."""
        self._source(join.this, scope)
        origin = scope.origins[-1]
        shared = [name.name for name in join.args.get("using") or []]
        if join.args.get("method") == "NATURAL":
            earlier = [c for o in scope.origins[:-1] for c in o.columns]
            shared = [c for c in origin.columns if c.lower() in {e.lower() for e in earlier}]
        if not shared:
            return []
        if join.side in ("RIGHT", "FULL"):
            raise Unconvertible(ChainOutcome.UNSUPPORTED, "USING or NATURAL on an outer join from the right")
        join.set("using", None)
        join.set("method", None)
        equal = [self._shared(name, origin, scope) for name in shared]
        join.set("on", exp.and_(*equal, copy=False))
        return [f"{origin.key}.{origin.spelled(name)}" for name in shared]

    def _shared(self, name: str, origin: Origin, scope: _Scope) -> Node:
        """`left.name = right.name` for a column of USING."""
        left = next((o for o in scope.origins[:-1] if o.spelled(name)), None)
        spelled = (left.spelled(name) if left else None, origin.spelled(name))
        if left is None or spelled[0] is None or spelled[1] is None:
            raise Unconvertible(ChainOutcome.UNRESOLVED, f"no column {name} to join on")
        return exp.EQ(this=column(left.key, spelled[0]), expression=column(origin.key, spelled[1]))

    def _stars(self, node: Node, scope: _Scope, hidden: set[str]) -> None:
        """Write out `*` and `t.*`."""
        written: list[Node] = []
        for item in node.expressions:
            if isinstance(item, exp.Star):
                origins = scope.origins
            elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                origins = [o for o in scope.origins if o.alias.lower() == item.table.lower()]
            else:
                written.append(item)
                continue
            whole = isinstance(item, exp.Star)
            found = [column(o.key, c) for o in origins for c in o.columns if not (whole and f"{o.key}.{c}" in hidden)]
            if not found:
                raise Unconvertible(ChainOutcome.UNRESOLVED, "a * that stands for nothing")
            written.extend(found)
        node.set("expressions", written)

    def _outputs(self, node: Node, scope: _Scope) -> tuple[str, ...]:
        """Resolve the output columns and give each a name that no other has."""
        default = scope.origins[0].name if len(scope.origins) == 1 else "row"
        items: list[Node] = []
        names: list[str] = []
        for item in node.expressions:
            named = isinstance(item, exp.Alias)
            holder = item if named else exp.Alias(this=item)
            self._clause(holder, scope)
            name = item.alias if named else value_name(holder.this, self._counted(holder.this) or default)
            if named:
                scope.aliases.setdefault(name.lower(), holder.this)
            names.append(unique(name, names))
            holder.set("alias", identifier(names[-1]))
            items.append(holder)
        node.set("expressions", items)
        return tuple(names)

    def _counted(self, item: Node) -> str:
        """The table whose column an output column counts, or nothing."""
        count = next((n for n in local_nodes(item) if isinstance(n, exp.Count)), None)
        counted = count.this if count is not None else None
        return self.origins[counted.table].name if isinstance(counted, exp.Column) and counted.table else ""

    def _clause(self, root: Node | None, scope: _Scope) -> None:
        """Bind the columns of a clause and resolve the queries nested in it."""
        if root is None:
            return
        for node in list(local_nodes(root)):
            if is_query(node):
                self.query(node, scope.ctes, scope)
            elif isinstance(node, exp.In) and node.args.get("field") is not None:
                raise Unconvertible(ChainOutcome.UNSUPPORTED, "IN with a table's name")
            elif isinstance(node, exp.Column) and node.table not in self.origins:
                node.replace(self._bound(node, scope))

    def _bound(self, node: Node, scope: _Scope) -> Node:
        """What a column stands for: a keyed column, an output column's expression, or a string.

        Raises:
            Unconvertible: nothing has that name.
        """
        if node.args.get("db"):
            raise Unconvertible(ChainOutcome.UNSUPPORTED, "a column with the database's name")
        for level in _outwards(scope):
            for origin in level.origins:
                if node.table and origin.alias.lower() != node.table.lower():
                    continue
                if spelled := origin.spelled(node.name):
                    return column(origin.key, spelled)
            if not node.table and node.name.lower() in level.aliases:
                return _operand(level.aliases[node.name.lower()].copy())
        if node.this.args.get("quoted") and not node.table:
            return exp.Literal.string(node.name)
        raise Unconvertible(ChainOutcome.UNRESOLVED, f"no column {node.sql()}")

    def _group_positions(self, node: Node) -> None:
        """`GROUP BY 1` means the first output column."""
        group = node.args.get("group")
        for key in list(group.expressions) if group else []:
            if (place := _position(key)) and place <= len(node.expressions):
                key.replace(node.expressions[place - 1].this.copy())

    def _order(self, node: Node, scope: _Scope) -> None:
        """ORDER BY: positions and names of output columns come before columns of the sources."""
        for ordered in node.args["order"].expressions if node.args.get("order") else []:
            key = ordered.this
            place = _position(key)
            alias = key.name.lower() if isinstance(key, exp.Column) and not key.table else ""
            if place and place <= len(node.expressions):
                ordered.set("this", node.expressions[place - 1].this.copy())
            elif alias in scope.aliases:
                ordered.set("this", scope.aliases[alias].copy())
            else:
                self._clause(ordered, scope)

    def _compound_order(self, node: Node, outputs: tuple[str, ...]) -> None:
        """ORDER BY of a compound names output columns, by name or position."""
        lower = {name.lower(): name for name in outputs}
        for ordered in node.args["order"].expressions if node.args.get("order") else []:
            place = _position(ordered.this)
            name = outputs[place - 1] if 0 < place <= len(outputs) else lower.get(ordered.this.name.lower(), "")
            if not name or not isinstance(ordered.this, exp.Column | exp.Literal):
                raise Unconvertible(ChainOutcome.UNSUPPORTED, "a compound ordered by an expression")
            ordered.set("this", column("", name))


def unique(name: str, taken: "list[str] | set[str]") -> str:
    """`name`, or with a number behind it where the name is taken in either case."""
    lower = {other.lower() for other in taken}
    candidates = (name, *(f"{name}_{number}" for number in range(2, len(lower) + 3)))
    return next(candidate for candidate in candidates if candidate.lower() not in lower)


def _outwards(scope: _Scope | None) -> Iterator[_Scope]:
    """The scope and those around it."""
    while scope is not None:
        yield scope
        scope = scope.parent


def _position(key: Node) -> int:
    """The number of an output column that a sort key is, else 0."""
    return int(key.this) if isinstance(key, exp.Literal) and not key.is_string and key.this.isdigit() else 0


def _operand(node: Node) -> Node:
    """An expression in parentheses where it is an operator."""
    return exp.Paren(this=node) if isinstance(node, exp.Binary | exp.Connector) else node
