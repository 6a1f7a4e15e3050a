"""Cut one stage after another off a SELECT: each cut makes a step, and what is left reads that step."""

from collections.abc import Callable
from dataclasses import replace

from verl_sql.dataset.cocte.block import Block, Join, Source, is_join_condition, used_columns
from verl_sql.dataset.cocte.grouping import pieces_of, read_pieces
from verl_sql.dataset.cocte.labels import block_name, column_names, joined_name
from verl_sql.dataset.cocte.names import filter_name, slug, value_name
from verl_sql.dataset.cocte.nodes import Node, column, outer_keys, sql_of
from verl_sql.dataset.cocte.plan import Depth, Pending, Stage, pending_stages
from verl_sql.dataset.cocte.reasons import ChainOutcome, Unconvertible
from verl_sql.dataset.cocte.resolve import unique
from verl_sql.dataset.cocte.sharing import does_the_same


class Cutter:
    """The steps made so far, and the ways to make one more.

    Args:
        taken: names that no step may have.
        keys: number of keys that are taken.
        depth: how far to go.
        break_ties: see `Stager`.
    """

    def __init__(self, taken: set[str], keys: int, depth: Depth, break_ties: bool = False) -> None:
        """No step yet."""
        self.steps: list[tuple[str, Node]] = []
        self.depth = depth
        self._taken, self._keys, self._break_ties = set(taken), keys, break_ties

    def reduce(self, block: Block) -> list[Pending]:
        """Cut stages off until one at most is left, and give that."""
        cuts: dict[Stage, Callable[[Block, Pending], None]] = {
            Stage.FILTER: self.cut_filter,
            Stage.JOIN: self.cut_join,
            Stage.REST: self.cut_filter,
            Stage.GROUP: self.cut_group,
            Stage.HAVING: self.cut_filter,
            Stage.DISTINCT: self.cut_distinct,
        }
        while len(pending := pending_stages(block, self.depth)) > 1 or (pending and self._must_cut(block, pending[0])):
            cuts[pending[0].stage](block, pending[0])
        return pending

    def _must_cut(self, block: Block, last: Pending) -> bool:
        """Whether the last stage needs a step of its own because columns are computed from its results."""
        return last.stage is Stage.GROUP and block.computes and self.depth is not Depth.NESTED

    def cut_filter(self, block: Block, pending: Pending) -> None:
        """A filter of one source, or of the rows of groups."""
        gone = {id(c) for c in pending.conditions}
        conditions = [c for c in (*block.where, *block.having) if id(c) in gone]
        block.where = [c for c in block.where if id(c) not in gone]
        block.having = [c for c in block.having if id(c) not in gone]
        source = pending.source or block.first
        if source is None:
            raise Unconvertible(ChainOutcome.UNSUPPORTED, "a filter without FROM")
        name = filter_name(source.noun, conditions)
        self.cut(block, Block(source, where=conditions), name, source.noun)

    def cut_join(self, block: Block, pending: Pending) -> None:
        """All sources put together."""
        joined = block.where if self.depth is Depth.COARSE else [c for c in block.where if is_join_condition(c)]
        joined = [c for c in joined if outer_keys(c) <= block.keys]
        step = Block(block.first, joins=block.joins, where=joined)
        gone = {id(c) for c in joined}
        block.where = [c for c in block.where if id(c) not in gone]
        block.joins = []
        self.cut(block, step, joined_name(step), block.noun)

    def cut(self, block: Block, step: Block, name: str, noun: str) -> None:
        """Make a step of some sources, with the columns that the rest needs; the rest reads it instead."""
        keys = step.keys
        used = used_columns(block.expressions(), keys)
        if not used:
            source = step.sources[0]
            used = [(source.key, c) for c in (source.primary_key[:1] or source.columns[:1])]
        names = column_names(used, step.sources)
        step.items = [(names[pair], column(*pair)) for pair in used]
        joined = len(keys) > 1 or step.sources[0].joined
        made = replace(self.emit(step, name), noun=noun, alias=step.sources[0].alias, joined=joined)
        if len(keys) == 1:
            made = replace(made, primary_key=tuple(c for c in step.sources[0].primary_key if c in made.columns))
        self._swap(block, step.sources[0], made)
        block.rename({pair: (made.key, new) for pair, new in names.items()})

    def _swap(self, block: Block, old: Source, new: Source) -> None:
        """Put a source in the place of another."""
        if block.first is not None and block.first.key == old.key:
            block.first = new
        block.joins = [Join(new, j.side, j.on) if j.source.key == old.key else j for j in block.joins]

    def cut_group(self, block: Block, pending: Pending) -> None:
        """Grouping: a step with every aggregate and every other column that the rest needs."""
        if self._break_ties and block.limit is not None and block.order:
            block.order += [_sorted_like(block.order[-1], key) for key in block.group]
        pieces = pieces_of(block)
        names: list[str] = []
        for node in pieces:
            given = next((name for name, item in block.items if item == node), None)
            names.append(unique(given or value_name(node, block.counted), names))
        step = Block(block.first, block.joins, block.where, list(zip(names, pieces, strict=True)), block.group)
        made = self.emit(step, block_name(replace(step), Pending(Stage.GROUP)))
        shown = {sql_of(node): name for name, node in zip(names, pieces, strict=True)}
        noun = "_and_".join(slug(shown[sql_of(key)]) for key in block.group) or block.noun
        made = replace(made, noun=noun)
        block.first, block.joins, block.where, block.group = made, [], [], []
        read_pieces(block, {text: (made.key, name) for text, name in shown.items()})
        block.where, block.having = block.having, []

    def cut_distinct(self, block: Block, pending: Pending) -> None:
        """The removal of repeats; what follows sorts by output columns."""
        step = replace(block, order=[], limit=None, offset=None)
        made = replace(self.emit(step, block_name(block, pending)), noun=block.noun)
        order = []
        for ordered in block.order:
            sort = ordered.copy()
            sort.set("this", column(made.key, next(n for n, node in block.items if node == ordered.this)))
            order.append(sort)
        block.items = [(name, column(made.key, name)) for name, _ in block.items]
        block.first, block.joins, block.where, block.group, block.having = made, [], [], [], []
        block.order, block.distinct = order, False

    def emit(self, block: Block, name: str) -> Source:
        """Add a step, unless an earlier one does the same work; the source that reads it."""
        select = block.select()
        told = next((step for step, other in self.steps if does_the_same(other, select)), None)
        if told is None:
            told = self.free(name)
            self.steps.append((told, select))
        return Source(self.key(), told, told, block.noun, tuple(n for n, _ in block.items))

    def free(self, name: str) -> str:
        """A step's name that no table and no other step has."""
        free = unique(name, self._taken)
        self._taken.add(free)
        return free

    def key(self) -> str:
        """A key that nothing has yet."""
        self._keys += 1
        return f"#{self._keys}"


def _sorted_like(ordered: Node, key: Node) -> Node:
    """A sort key in the direction of another."""
    sort = ordered.copy()
    sort.set("this", key.copy())
    return sort
