"""Take a resolved query apart into named steps, one a stage of its work.

Nested queries become steps first. Then a SELECT gives up its stages from the inside out: filters of single tables, the
join, what is left of WHERE, grouping, the filter of groups, the removal of repeats, the cut to the first rows. Each cut
makes a step of the sources so far with the columns that the rest still needs, and the rest then reads that step. What
remains for the final query is to pick, compute and sort output columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from verl_sql.dataset.cocte.block import Block, Source, read_block, used_columns
from verl_sql.dataset.cocte.cutting import Cutter
from verl_sql.dataset.cocte.labels import block_name, limit_of, values_name
from verl_sql.dataset.cocte.names import set_name, slug, step_name, value_name
from verl_sql.dataset.cocte.nodes import Node, column, is_correlated, nested_queries, outer_keys, unwrap
from verl_sql.dataset.cocte.plan import Depth, Pending, Stage, loose_order, single_filters
from verl_sql.dataset.cocte.reasons import ChainOutcome, Unconvertible
from verl_sql.dataset.cocte.resolve import Origin, unique

_OPERATORS = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}


@dataclass(frozen=True, slots=True)
class Relation:
    """What a nested query became: a step, or a base table when it only picks columns of one.

    Attributes:
        source: the step or table to read.
        columns: output name of the nested query to column of the source, in order.
        is_step: False for the base table or step that was there before.
    """

    source: Source
    columns: dict[str, str]
    is_step: bool


class Stager:
    """Takes one resolved query apart; `steps` are the CTEs in order.

    Args:
        origins: what the resolver found behind each key.
        taken: names that no step may have: the tables of the database.
        depth: how far to go.
        break_ties: let the groups that a LIMIT chooses from be sorted by their keys too. SQLite sorts groups in the
            direction of ORDER BY, so among equal ones the gold gets the first or last key.
    """

    def __init__(self, origins: dict[str, Origin], taken: set[str], depth: Depth, break_ties: bool = False) -> None:
        """No step yet."""
        self.depth = depth
        self._cutter = Cutter(taken, len(origins), depth, break_ties)
        self._origins = origins
        self._ctes: dict[str, Relation] = {}

    @property
    def steps(self) -> list[tuple[str, Node]]:
        """Name and SELECT of each step."""
        return self._cutter.steps

    # --- the whole query ---

    def final(self, query: Node) -> Node | None:
        """Make the steps; returns the final query, None when the query is a single stage and makes no step."""
        block = self._block(query)
        pending = self._cutter.reduce(block)
        if not pending:
            return block.select() if self.steps else None
        if not self.steps and not self._sorts(block):
            return None
        if pending[0].stage is Stage.DISTINCT and loose_order(block):
            return block.select()
        return self._ordered_read(block, pending[0])

    def _sorts(self, block: Block) -> bool:
        """Whether the final query has rows to sort after the last stage."""
        return bool(block.order) and block.limit is None and not (block.distinct and loose_order(block))

    def _ordered_read(self, block: Block, last: Pending) -> Node:
        """Make the last stage a step; the query that reads it in the order of the whole."""
        keys = [] if limit_of(block) == "1" else list(block.order)
        shown, extra = list(block.items), []
        for ordered in keys:
            same = next((name for name, node in block.items if node == ordered.this), None)
            if same is None:
                same = unique(value_name(ordered.this, block.counted), [name for name, _ in block.items])
                block.items.append((same, ordered.this))
            extra.append(same)
        if block.limit is None:
            block.order = []
        source = self._cutter.emit(block, block_name(block, last))
        final = Block(source, items=[(name, column(source.key, name)) for name, _ in shown])
        for ordered, name in zip(keys, extra, strict=True):
            sort = ordered.copy()
            sort.set("this", column(source.key, name))
            final.order.append(sort)
        return final.select()

    # --- nested queries ---

    def relation(self, query: Node, hint: str = "") -> Relation:
        """Make steps of a nested query that uses nothing of the query around it."""
        block = self._block(query)
        if block.limit is None:
            block.order = []
        pending = self._cutter.reduce(block)
        if not pending and block.is_bare and block.first is not None:
            return Relation(block.first, {name: node.name for name, node in block.items}, False)
        name = (
            block_name(block, pending[0]) if pending else step_name("_and_".join(n for n, _ in block.items), "values")
        )
        source = self._cutter.emit(block, hint if len(hint) > 3 else name)
        return Relation(source, {name: name for name in source.columns}, True)

    def _block(self, query: Node) -> Block:
        """The block of a query, its CTEs and nested queries already steps."""
        query = unwrap(query)
        own = query.args.get("with_") or query.args.get("with")
        for cte in own.expressions if own else []:
            self._ctes[cte.alias.lower()] = self.relation(cte.this, slug(cte.alias))
        if isinstance(query, exp.SetOperation):
            return self._compound(query)
        renames: dict[tuple[str, str], tuple[str, str]] = {}
        block = read_block(query, lambda node: self._source(node, renames))
        block.rename(renames)
        for join in block.joins:
            if not join.side and not block.outer_joined():
                block.where += [c for c in join.on if len(outer_keys(c)) < 2]
                join.on = [c for c in join.on if len(outer_keys(c)) >= 2]
        block.change(self._without_nested)
        return block

    def _source(self, node: Node, renames: dict[tuple[str, str], tuple[str, str]]) -> Source:
        """What an entry of a FROM clause reads; a step's columns may be named otherwise, see `renames`."""
        origin = self._origins[node.alias]
        if origin.kind == "table":
            return Source(origin.key, origin.name, origin.alias, slug(origin.name), origin.columns, origin.primary_key)
        hint = slug(origin.alias)
        read = self._ctes[origin.name] if origin.kind == "cte" else self.relation(node.this, hint)
        renames.update({(origin.key, name): (origin.key, other) for name, other in read.columns.items()})
        return replace(read.source, key=origin.key, alias=origin.alias)

    def _without_nested(self, node: Node) -> Node:
        """The expression with its nested queries reading steps."""
        copy = exp.Paren(this=node.copy())
        for query in nested_queries(copy):
            new = self._thinned(query) if is_correlated(query) else self._read(query)
            query.replace(new)
        return copy.this

    def _read(self, query: Node) -> Node:
        """A nested query that stands alone, as `SELECT column FROM step`."""
        member = isinstance(query.parent, exp.Subquery) and isinstance(query.parent.parent, exp.In)
        found = self.relation(query)
        if not found.is_step and member:
            found = self._distinct(found)
        items = [(name, column(found.source.key, other)) for name, other in found.columns.items()]
        return Block(found.source, items=items).select()

    def _distinct(self, found: Relation) -> Relation:
        """The values that a membership is tested in, as a step."""
        source, names = found.source, list(found.columns.values())
        block = Block(source, items=[(n, column(source.key, n)) for n in names], distinct=True)
        made = self._cutter.emit(block, values_name(names, source))
        return Relation(made, {name: name for name in names}, True)

    def _thinned(self, query: Node) -> Node:
        """A correlated query, with what does not depend on the query around it done in steps before."""
        if not isinstance(query, exp.Select):
            raise Unconvertible(ChainOutcome.UNSUPPORTED, "a correlated compound")
        exists = isinstance(query.parent, exp.Exists)
        block = self._block(query)
        if self.depth is Depth.NESTED:
            return block.select()
        if exists and not block.aggregated:
            block.items, block.distinct, block.order = [("one", exp.Literal.number(1))], False, []
        while filters := single_filters(block):
            self._cutter.cut_filter(block, filters[0])
        if exists and block.first is not None and not (block.aggregated or block.limit):
            if block.joins:
                self._cutter.cut_join(block, Pending(Stage.JOIN))
            self._cut_keys(block)
        return block.select()

    def _cut_keys(self, block: Block) -> None:
        """EXISTS asks whether a key is there: let a step hold the keys, each once."""
        source = block.first
        if source is None or not (used := used_columns(block.where, {source.key})):
            return
        name = values_name([name for _, name in used], source)
        self._cutter.cut(block, Block(source, distinct=True), name, source.noun)

    def _compound(self, query: Node) -> Block:
        """A compound as a block that reads its step."""
        branches = _branches(query)
        found = [self.relation(branch) for _, branch in branches]
        if not any(relation.is_step for relation in found) and not any(op.endswith("ALL") for op, _ in branches):
            found = [self._distinct(relation) for relation in found]
        outputs = list(found[0].columns)
        step: Node = self._branch(found[0], outputs)
        for (operator, _), relation in zip(branches[1:], found[1:], strict=True):
            kind = next(k for k, word in _OPERATORS.items() if operator.startswith(word))
            right = self._branch(relation, outputs)
            step = kind(this=step, expression=right, distinct=not operator.endswith("ALL"))
        name = self._cutter.free(set_name(branches[-1][0].split()[0], outputs, found[0].source.noun))
        self._cutter.steps.append((name, step))
        source = Source(self._cutter.key(), name, name, found[0].source.noun, tuple(outputs))
        block = Block(source, items=[(n, column(source.key, n)) for n in outputs])
        block.limit, block.offset = query.args.get("limit"), query.args.get("offset")
        for ordered in query.args["order"].expressions if query.args.get("order") else []:
            sort = ordered.copy()
            sort.set("this", column(source.key, sort.this.name))
            block.order.append(sort)
        return block

    def _branch(self, relation: Relation, outputs: Sequence[str]) -> Node:
        """One branch's SELECT, under a key of its own, with the compound's column names."""
        source = replace(relation.source, key=self._cutter.key())
        pairs = zip(outputs, relation.columns.values(), strict=False)
        if len(relation.columns) != len(outputs):
            raise Unconvertible(ChainOutcome.UNSUPPORTED, "branches of different width")
        return Block(source, items=[(name, column(source.key, other)) for name, other in pairs]).select()


def _branches(query: Node) -> list[tuple[str, Node]]:
    """The SELECTs of a compound from left to right, each with the operator before it."""
    found: list[tuple[str, Node]] = []
    while isinstance(query, exp.SetOperation):
        if found and any(query.args.get(part) for part in ("order", "limit", "with", "with_")):
            raise Unconvertible(ChainOutcome.UNSUPPORTED, "a compound inside a compound")
        right = unwrap(query.right)
        if isinstance(right, exp.SetOperation):
            raise Unconvertible(ChainOutcome.UNSUPPORTED, "a compound that groups to the right")
        every = "" if query.args.get("distinct") else " ALL"
        found.append((_OPERATORS[type(query)] + every, right))
        query = unwrap(query.left)
    return [("", query), *reversed(found)]
