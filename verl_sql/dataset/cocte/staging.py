"""Take a resolved query apart into named steps, one a stage of its work.

Nested queries become steps first. Then a SELECT gives up its stages from the inside out: filters of single tables, the
join, what is left of WHERE, grouping, the filter of groups, the removal of repeats, the cut to the first rows. Each cut
makes a step of the sources so far with the columns that the rest still needs, and the rest then reads that step. What
remains for the final query is to pick, compute and sort output columns.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from sqlglot import exp

from verl_sql.dataset.cocte.block import Block, Join, Source, is_join_condition, read_block, renamed, used_columns
from verl_sql.dataset.cocte.names import filter_name, group_name, join_name, set_name, slug, step_name, top_name
from verl_sql.dataset.cocte.names import value_name as value_name_of
from verl_sql.dataset.cocte.nodes import (
    Node,
    aggregates,
    column,
    is_aggregate,
    is_correlated,
    is_query,
    nested_queries,
    outer_keys,
    replaced,
    sql_of,
    table,
    unwrap,
)
from verl_sql.dataset.cocte.reasons import ChainOutcome, Unconvertible
from verl_sql.dataset.cocte.resolve import Origin, unique

_OPERATORS = {exp.Union: "UNION", exp.Intersect: "INTERSECT", exp.Except: "EXCEPT"}


class Depth(StrEnum):
    """How far a query is taken apart; each is tried when the one before does not verify."""

    FULL = "full"
    """Filters of single tables come before the join."""
    LATE = "late"
    """The join comes first, the filters after it."""
    COARSE = "coarse"
    """Join and filters are one step."""
    NESTED = "nested"
    """Only nested queries and branches of compounds become steps; each SELECT stays whole."""


class Stage(StrEnum):
    """A stage of one SELECT."""

    FILTER = "filter"
    JOIN = "join"
    REST = "rest"
    GROUP = "group"
    HAVING = "having"
    DISTINCT = "distinct"
    TOP = "top"


@dataclass(frozen=True, slots=True)
class Pending:
    """A stage that a block still has, with what it is about."""

    stage: Stage
    source: Source | None = None
    conditions: tuple[Node, ...] = ()


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
        self._break_ties = break_ties
        self.steps: list[tuple[str, Node]] = []
        self._origins = origins
        self._taken = set(taken)
        self.depth = depth
        self._ctes: dict[str, Relation] = {}
        self._keys = len(origins)

    # --- the whole query ---

    def final(self, query: Node) -> Node | None:
        """Make the steps; returns the final query, None when the query is a single stage and makes no step."""
        block = self._block(query)
        pending = self._reduce(block)
        if not pending:
            return block.select() if self.steps else None
        if not self.steps and not self._sorts(block):
            return None
        if pending[0].stage is Stage.DISTINCT and self._loose_order(block):
            return block.select()
        return self._ordered_read(block, pending[0])

    def _sorts(self, block: Block) -> bool:
        """Whether the final query has rows to sort after the last stage."""
        return bool(block.order) and block.limit is None and not (block.distinct and self._loose_order(block))

    def _ordered_read(self, block: Block, last: Pending) -> Node:
        """Make the last stage a step; the query that reads it in the order of the whole."""
        keys = [] if _limit_of(block) == "1" else list(block.order)
        shown, extra = list(block.items), []
        for ordered in keys:
            same = next((name for name, node in block.items if node == ordered.this), None)
            if same is None:
                same = unique(value_name_of(ordered.this, block.counted), [name for name, _ in block.items])
                block.items.append((same, ordered.this))
            extra.append(same)
        if block.limit is None:
            block.order = []
        source = self._emit(block, self._name(block, last))
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
        pending = self._reduce(block)
        if not pending and block.is_bare and block.first is not None:
            return Relation(block.first, {name: node.name for name, node in block.items}, False)
        name = (
            self._name(block, pending[0]) if pending else step_name("_and_".join(n for n, _ in block.items), "values")
        )
        source = self._emit(block, hint if len(hint) > 3 else name)
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
        made = self._emit(block, _values_name(names, source))
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
        while filters := self._filters(block):
            self._cut_filter(block, filters[0])
        if exists and block.first is not None and not (block.aggregated or block.limit):
            if block.joins:
                self._cut_join(block, Pending(Stage.JOIN))
            self._cut_keys(block)
        return block.select()

    def _cut_keys(self, block: Block) -> None:
        """EXISTS asks whether a key is there: let a step hold the keys, each once."""
        source = block.first
        if source is None or not (used := used_columns(block.where, {source.key})):
            return
        name = _values_name([name for _, name in used], source)
        self._cut(block, Block(source, distinct=True), name, source.noun)

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
        name = self._free(set_name(branches[-1][0].split()[0], outputs, found[0].source.noun))
        self.steps.append((name, step))
        source = Source(self._key(), name, name, found[0].source.noun, tuple(outputs))
        block = Block(source, items=[(n, column(source.key, n)) for n in outputs])
        block.limit, block.offset = query.args.get("limit"), query.args.get("offset")
        for ordered in query.args["order"].expressions if query.args.get("order") else []:
            sort = ordered.copy()
            sort.set("this", column(source.key, sort.this.name))
            block.order.append(sort)
        return block

    def _branch(self, relation: Relation, outputs: Sequence[str]) -> Node:
        """One branch's SELECT, under a key of its own, with the compound's column names."""
        source = replace(relation.source, key=self._key())
        pairs = zip(outputs, relation.columns.values(), strict=False)
        if len(relation.columns) != len(outputs):
            raise Unconvertible(ChainOutcome.UNSUPPORTED, "branches of different width")
        return Block(source, items=[(name, column(source.key, other)) for name, other in pairs]).select()

    # --- the stages of one SELECT ---

    def _reduce(self, block: Block) -> list[Pending]:
        """Cut stages off until one at most is left, and give that."""
        cuts: dict[Stage, Callable[[Block, Pending], None]] = {
            Stage.FILTER: self._cut_filter,
            Stage.JOIN: self._cut_join,
            Stage.REST: self._cut_filter,
            Stage.GROUP: self._cut_group,
            Stage.HAVING: self._cut_filter,
            Stage.DISTINCT: self._cut_distinct,
        }
        while len(pending := self._pending(block)) > 1 or (pending and self._must_cut(block, pending[0])):
            cuts[pending[0].stage](block, pending[0])
        return pending

    def _must_cut(self, block: Block, last: Pending) -> bool:
        """Whether the last stage needs a step of its own because columns are computed from its results."""
        return last.stage is Stage.GROUP and block.computes and self.depth is not Depth.NESTED

    def _pending(self, block: Block) -> list[Pending]:
        """The stages a block still has, in the order of their work."""
        if self.depth is Depth.NESTED:
            return self._whole(block)
        found = [*self._filters(block)] if self.depth is Depth.FULL or not block.joins else []
        if block.joins:
            found.append(Pending(Stage.JOIN))
        done = {id(c) for p in found for c in p.conditions}
        rest = tuple(c for c in block.where if id(c) not in done and not (block.joins and is_join_condition(c)))
        if rest and not (block.joins and self.depth is Depth.COARSE):
            found.append(Pending(Stage.REST, block.first, rest))
        if block.aggregated:
            found.append(Pending(Stage.GROUP))
        if block.having:
            found.append(Pending(Stage.HAVING, block.first, tuple(block.having)))
        if block.distinct and not (block.limit and self._loose_order(block)):
            found.append(Pending(Stage.DISTINCT))
        if block.limit is not None:
            found.append(Pending(Stage.TOP))
        return found

    def _whole(self, block: Block) -> list[Pending]:
        """All of a block as one stage, named after its last one."""
        order = (
            (block.limit is not None, Stage.TOP),
            (block.distinct, Stage.DISTINCT),
            (block.aggregated, Stage.GROUP),
            (bool(block.joins), Stage.JOIN),
            (bool(block.where), Stage.REST),
        )
        return next(([Pending(stage, block.first, tuple(block.where))] for there, stage in order if there), [])

    def _filters(self, block: Block) -> list[Pending]:
        """Filters of single sources: first the plain conditions of each, then those with nested queries."""
        shielded = block.outer_joined()
        plain, nested = [], []
        for source in block.sources:
            if source.key in shielded:
                continue
            own = [c for c in block.where if outer_keys(c) == {source.key}]
            simple = tuple(c for c in own if not nested_queries(c))
            with_queries = tuple(c for c in own if nested_queries(c))
            plain += [Pending(Stage.FILTER, source, simple)] if simple else []
            nested += [Pending(Stage.FILTER, source, with_queries)] if with_queries else []
        return [*plain, *nested]

    def _loose_order(self, block: Block) -> bool:
        """Whether a DISTINCT query sorts by something that it does not show."""
        return any(all(node != ordered.this for _, node in block.items) for ordered in block.order)

    def _cut_filter(self, block: Block, pending: Pending) -> None:
        """A filter of one source, or of the rows of groups."""
        gone = {id(c) for c in pending.conditions}
        conditions = [c for c in (*block.where, *block.having) if id(c) in gone]
        block.where = [c for c in block.where if id(c) not in gone]
        block.having = [c for c in block.having if id(c) not in gone]
        source = pending.source or block.first
        if source is None:
            raise Unconvertible(ChainOutcome.UNSUPPORTED, "a filter without FROM")
        name = filter_name(source.noun, conditions)
        self._cut(block, Block(source, where=conditions), name, source.noun)

    def _cut_join(self, block: Block, pending: Pending) -> None:
        """All sources put together."""
        joined = block.where if self.depth is Depth.COARSE else [c for c in block.where if is_join_condition(c)]
        joined = [c for c in joined if outer_keys(c) <= block.keys]
        step = Block(block.first, joins=block.joins, where=joined)
        gone = {id(c) for c in joined}
        block.where = [c for c in block.where if id(c) not in gone]
        block.joins = []
        self._cut(block, step, _joined_name(step), block.noun)

    def _cut(self, block: Block, step: Block, name: str, noun: str) -> None:
        """Make a step of some sources, with the columns that the rest needs; the rest reads it instead."""
        keys = step.keys
        used = used_columns(block.expressions(), keys)
        if not used:
            source = step.sources[0]
            used = [(source.key, c) for c in (source.primary_key[:1] or source.columns[:1])]
        names = _column_names(used, step.sources)
        step.items = [(names[pair], column(*pair)) for pair in used]
        joined = len(keys) > 1 or step.sources[0].joined
        made = replace(self._emit(step, name), noun=noun, alias=step.sources[0].alias, joined=joined)
        if len(keys) == 1:
            made = replace(made, primary_key=tuple(c for c in step.sources[0].primary_key if c in made.columns))
        self._swap(block, step.sources[0], made)
        block.rename({pair: (made.key, new) for pair, new in names.items()})

    def _swap(self, block: Block, old: Source, new: Source) -> None:
        """Put a source in the place of another."""
        if block.first is not None and block.first.key == old.key:
            block.first = new
        block.joins = [Join(new, j.side, j.on) if j.source.key == old.key else j for j in block.joins]

    def _cut_group(self, block: Block, pending: Pending) -> None:
        """Grouping: a step with every aggregate and every other column that the rest needs."""
        if self._break_ties and block.limit is not None and block.order:
            block.order += [_sorted_like(block.order[-1], key) for key in block.group]
        pieces = _pieces(block)
        names: list[str] = []
        for node in pieces:
            given = next((name for name, item in block.items if item == node), None)
            names.append(unique(given or value_name_of(node, block.counted), names))
        step = Block(block.first, block.joins, block.where, list(zip(names, pieces, strict=True)), block.group)
        made = self._emit(step, self._name(replace_items(step), Pending(Stage.GROUP)))
        shown = {sql_of(node): name for name, node in zip(names, pieces, strict=True)}
        noun = "_and_".join(slug(shown[sql_of(key)]) for key in block.group) or block.noun
        made = replace(made, noun=noun)
        block.first, block.joins, block.where, block.group = made, [], [], []
        _read_pieces(block, {text: (made.key, name) for text, name in shown.items()})
        block.where, block.having = block.having, []

    def _cut_distinct(self, block: Block, pending: Pending) -> None:
        """The removal of repeats; what follows sorts by output columns."""
        step = replace_items(block, order=[], limit=None, offset=None)
        made = replace(self._emit(step, self._name(block, pending)), noun=block.noun)
        order = []
        for ordered in block.order:
            sort = ordered.copy()
            sort.set("this", column(made.key, next(n for n, node in block.items if node == ordered.this)))
            order.append(sort)
        block.items = [(name, column(made.key, name)) for name, _ in block.items]
        block.first, block.joins, block.where, block.group, block.having = made, [], [], [], []
        block.order, block.distinct = order, False

    # --- steps and their names ---

    def _emit(self, block: Block, name: str) -> Source:
        """Add a step; the source that reads it."""
        free = self._free(name)
        self.steps.append((free, block.select()))
        return Source(self._key(), free, free, block.noun, tuple(n for n, _ in block.items))

    def _free(self, name: str) -> str:
        """A step's name that no table and no other step has."""
        free = unique(name, self._taken)
        self._taken.add(free)
        return free

    def _key(self) -> str:
        """A key that nothing has yet."""
        self._keys += 1
        return f"#{self._keys}"

    def _name(self, block: Block, last: Pending) -> str:
        """The name of a block whose last stage is `last`."""
        if last.stage is Stage.TOP:
            first = block.order[0] if block.order else None
            key = slug(value_name_of(first.this, block.counted)) if first is not None else ""
            descending = bool(first is not None and first.args.get("desc"))
            return top_name(block.noun, key, descending, _limit_of(block), block.offset is not None)
        if last.stage is Stage.DISTINCT:
            return step_name(f"distinct_{'_and_'.join(n for n, _ in block.items)}", f"distinct_{block.noun}")
        if last.stage is Stage.GROUP:
            values = [name for name, node in block.items if aggregates(node)]
            groups = [slug(g.name) or slug(value_name_of(g, block.noun)) for g in block.group]
            return group_name(values, groups, block.counted)
        if last.stage is Stage.JOIN:
            return _joined_name(block)
        return filter_name(block.noun, last.conditions)


def _sorted_like(ordered: Node, key: Node) -> Node:
    """A sort key in the direction of another."""
    sort = ordered.copy()
    sort.set("this", key.copy())
    return sort


def replace_items(block: Block, **changes: object) -> Block:
    """The block again with some parts other."""
    return replace(block, **changes)  # type: ignore[arg-type]


def _values_name(columns: Sequence[str], source: Source) -> str:
    """The name of the different values that some columns of a table or step hold."""
    what = "_and_".join(columns)
    return step_name(f"{what}_of_{slug(source.name)}", f"{what}_of_{source.noun}", f"values_of_{source.noun}")


def _joined_name(block: Block) -> str:
    """The name of a block's sources put together."""
    return join_name([slug(source.name) for source in block.sources], [source.noun for source in block.sources])


def _limit_of(block: Block) -> str:
    """The number of a LIMIT without OFFSET, as text; empty for anything else."""
    value = block.limit.expression if block.limit is not None else None
    return str(value.this) if isinstance(value, exp.Literal) else ""


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


def _column_names(used: Sequence[tuple[str, str]], sources: Sequence[Source]) -> dict[tuple[str, str], str]:
    """A step's column for each (key, column): the same name, or with the table before it where two share one."""
    of_key = {source.key: source for source in sources}
    count: dict[str, int] = {}
    for _, name in used:
        count[name.lower()] = count.get(name.lower(), 0) + 1
    names: dict[tuple[str, str], str] = {}
    for key, name in used:
        source = of_key[key]
        twins = [s for s in sources if s.noun == source.noun]
        prefix = slug(source.alias) if len(twins) > 1 else source.noun
        wanted = f"{prefix}_{name}" if count[name.lower()] > 1 else name
        names[(key, name)] = unique(wanted, list(names.values()))
    return names


def _pieces(block: Block) -> list[Node]:
    """What stands in the step of a grouped block: group expressions, aggregates and columns in use, each once."""
    groups = [sql_of(g) for g in block.group]
    found: dict[str, Node] = {}

    def note(node: Node, nested: bool) -> Node | None:
        ours = isinstance(node, exp.Column) and node.table in block.keys
        if isinstance(node, exp.Ordered):
            return None
        if ours or (not nested and (is_aggregate(node) or sql_of(node) in groups)):
            found.setdefault(sql_of(node), node.copy())
            return node.copy()
        return None

    for node in (*(item for _, item in block.items), *block.having, *block.order):
        replaced(node, note)
    missing = {sql_of(key): key for key in block.group if sql_of(key) not in found}
    return [*missing.values(), *found.values()]


def _read_pieces(block: Block, names: dict[str, tuple[str, str]]) -> None:
    """Let what is left of a grouped block read the step's columns."""

    def read(node: Node, nested: bool) -> Node | None:
        if isinstance(node, exp.Ordered) or (nested and not isinstance(node, exp.Column)):
            return None  # an ascending sort key reads like the bare expression
        new = names.get(sql_of(node)) if not is_query(node) else None
        return column(*new) if new else None

    block.change(lambda node: replaced(node, read))


__all__ = ["Depth", "Relation", "Stager", "renamed", "table"]
