"""One SELECT as its parts, so that parts can be cut off into steps and the rest rewritten to read those steps."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from verl_sql.dataset.cocte.nodes import (
    Node,
    aggregates,
    column,
    conjunction,
    conjuncts,
    from_clause,
    has_window,
    identifier,
    local_nodes,
    nested_queries,
    outer_keys,
    replaced,
    table,
)


@dataclass(frozen=True, slots=True)
class Source:
    """A table or step in a FROM clause.

    Attributes:
        key: its unique alias.
        name: the table's or step's name.
        alias: what the query called it.
        noun: what its rows are, for names.
        columns: its columns.
        primary_key: its key columns, where they are known.
        joined: whether its rows are put together from several tables.
    """

    key: str
    name: str
    alias: str
    noun: str
    columns: tuple[str, ...]
    primary_key: tuple[str, ...] = ()
    joined: bool = False


@dataclass(slots=True)
class Join:
    """How one source after the first is joined: side ("", "LEFT", "RIGHT", "FULL") and the conditions of ON."""

    source: Source
    side: str
    on: list[Node]


@dataclass(slots=True)
class Block:
    """One SELECT; every expression is in keys.

    Attributes:
        first: the first source; None for a SELECT without FROM.
        joins: the sources after it.
        where: conditions joined by AND.
        items: output columns, name and expression.
        group: GROUP BY.
        having: conditions joined by AND.
        distinct: SELECT DISTINCT.
        order: ORDER BY, as Ordered nodes.
        limit: rows to keep, or None.
        offset: rows to leave out first, or None.
        noun: what the rows are when they are none of the first source's.
    """

    first: Source | None
    joins: list[Join] = field(default_factory=list)
    where: list[Node] = field(default_factory=list)
    items: list[tuple[str, Node]] = field(default_factory=list)
    group: list[Node] = field(default_factory=list)
    having: list[Node] = field(default_factory=list)
    distinct: bool = False
    order: list[Node] = field(default_factory=list)
    limit: Node | None = None
    offset: Node | None = None

    @property
    def sources(self) -> list[Source]:
        """All sources in order."""
        return [*([self.first] if self.first else []), *(join.source for join in self.joins)]

    @property
    def keys(self) -> set[str]:
        """Their keys."""
        return {source.key for source in self.sources}

    @property
    def noun(self) -> str:
        """What the rows of the first source are."""
        return self.first.noun if self.first else "value"

    @property
    def counted(self) -> str:
        """What COUNT(*) counts."""
        return "row" if self.joins or (self.first and self.first.joined) else self.noun

    @property
    def aggregated(self) -> bool:
        """Whether rows are grouped."""
        return bool(self.group or any(aggregates(node) for node in (*self._after_grouping(), *self.having)))

    @property
    def windowed(self) -> bool:
        """Whether an output column or sort key is a window function."""
        return any(has_window(node) for node in self._after_grouping())

    @property
    def computes(self) -> bool:
        """Whether an output column is computed from several aggregates."""
        return not self.windowed and any(len(aggregates(node)) > 1 for _, node in self.items)

    @property
    def is_bare(self) -> bool:
        """Whether it only picks columns of one source."""
        plain = all(isinstance(node, exp.Column) and node.table in self.keys for _, node in self.items)
        more = self.where or self.group or self.having or self.distinct or self.order or self.limit or self.joins
        return plain and not more and self.first is not None

    def _after_grouping(self) -> list[Node]:
        return [*(node for _, node in self.items), *self.order]

    def outer_joined(self) -> set[str]:
        """Keys of sources whose rows may be made up of NULLs, or lie before such a join from the right."""
        found: set[str] = set()
        seen = {self.first.key} if self.first else set()
        for join in self.joins:
            if join.side in ("RIGHT", "FULL"):
                found |= seen
            if join.side in ("LEFT", "FULL"):
                found.add(join.source.key)
            seen.add(join.source.key)
        return found

    def expressions(self) -> Iterator[Node]:
        """Every expression of the block."""
        for join in self.joins:
            yield from join.on
        yield from (*self.where, *(node for _, node in self.items), *self.group, *self.having, *self.order)

    def change(self, rewrite: Callable[[Node], Node]) -> None:
        """Put `rewrite(expression)` in the place of every expression."""
        for join in self.joins:
            join.on = [rewrite(node) for node in join.on]
        self.where = [rewrite(node) for node in self.where]
        self.items = [(name, rewrite(node)) for name, node in self.items]
        self.group = [rewrite(node) for node in self.group]
        self.having = [rewrite(node) for node in self.having]
        self.order = [rewrite(node) for node in self.order]

    def rename(self, names: Mapping[tuple[str, str], tuple[str, str]]) -> None:
        """Let columns (key, name) be other ones, in nested queries too."""
        self.change(lambda node: renamed(node, names))

    def select(self) -> Node:
        """The block as a SELECT."""
        query = exp.Select(expressions=[exp.Alias(this=node.copy(), alias=identifier(n)) for n, node in self.items])
        if self.first:
            query.from_(table(self.first.name, self.first.key), copy=False)
        for join in self.joins:
            query.append("joins", _join_node(join))
        for part, kind, nodes in (("where", exp.Where, self.where), ("having", exp.Having, self.having)):
            if nodes:
                query.set(part, kind(this=conjunction(node.copy() for node in nodes)))
        if self.group:
            query.set("group", exp.Group(expressions=[node.copy() for node in self.group]))
        if self.distinct:
            query.set("distinct", exp.Distinct())
        if self.order:
            query.set("order", exp.Order(expressions=[node.copy() for node in self.order]))
        query.set("limit", self.limit.copy() if self.limit else None)
        query.set("offset", self.offset.copy() if self.offset else None)
        return query


def _join_node(join: Join) -> Node:
    """A join; without side and condition it is a comma."""
    on = conjunction(node.copy() for node in join.on)
    node = exp.Join(this=table(join.source.name, join.source.key), on=on)
    if join.side:
        node.set("side", join.side)
    return node


def renamed(node: Node, names: Mapping[tuple[str, str], tuple[str, str]]) -> Node:
    """The expression with columns (key, name) renamed, those in nested queries too."""

    def change(found: Node, nested: bool) -> Node | None:
        new = names.get((found.table, found.name)) if isinstance(found, exp.Column) else None
        return column(*new) if new else None

    return replaced(node, change)


def read_block(select: Node, source_of: Callable[[Node], Source]) -> Block:
    """The parts of a resolved SELECT; `source_of` says what a node of a FROM clause is."""
    origin = from_clause(select)
    block = Block(source_of(origin.this) if origin is not None else None)
    for join in select.args.get("joins") or []:
        on = [c for c in conjuncts(join.args.get("on")) if not isinstance(c, exp.Boolean)]  # sqlglot adds ON TRUE
        block.joins.append(Join(source_of(join.this), join.side, on))
    where, having = select.args.get("where"), select.args.get("having")
    block.where = conjuncts(where.this if where else None)
    block.having = conjuncts(having.this if having else None)
    block.items = [(item.alias, item.this) for item in select.expressions]
    block.group = list(select.args["group"].expressions) if select.args.get("group") else []
    block.distinct = bool(select.args.get("distinct"))
    block.order = list(select.args["order"].expressions) if select.args.get("order") else []
    block.limit, block.offset = select.args.get("limit"), select.args.get("offset")
    return block


def used_columns(nodes: Iterable[Node], keys: set[str]) -> list[tuple[str, str]]:
    """(key, name) of the columns of some sources that expressions use, nested queries included, each once."""
    found: dict[tuple[str, str], None] = {}
    for node in nodes:
        for used in node.find_all(exp.Column):
            if used.table in keys:
                found[(used.table, used.name)] = None
    return list(found)


def is_join_condition(node: Node) -> bool:
    """Whether a condition compares columns of different sources and nothing else."""
    simple = isinstance(node, exp.Predicate) and not nested_queries(node)
    return simple and len(outer_keys(node)) > 1 and not any(isinstance(n, exp.Or) for n in local_nodes(node))
