"""Which stages of work a SELECT still has, and in which order they are cut off."""

from dataclasses import dataclass
from enum import StrEnum

from verl_sql.dataset.cocte.block import Block, Source, is_join_condition
from verl_sql.dataset.cocte.nodes import Node, nested_queries, outer_keys


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


def pending_stages(block: Block, depth: Depth) -> list[Pending]:
    """The stages a block still has, in the order of their work."""
    if depth is Depth.NESTED:
        return _whole(block)
    found = [*single_filters(block)] if depth is Depth.FULL or not block.joins else []
    if block.joins:
        found.append(Pending(Stage.JOIN))
    done = {id(c) for p in found for c in p.conditions}
    rest = tuple(c for c in block.where if id(c) not in done and not (block.joins and is_join_condition(c)))
    if rest and not (block.joins and depth is Depth.COARSE):
        found.append(Pending(Stage.REST, block.first, rest))
    if block.aggregated:
        found.append(Pending(Stage.GROUP))
    if block.having:
        found.append(Pending(Stage.HAVING, block.first, tuple(block.having)))
    if block.distinct and not (block.limit and loose_order(block)):
        found.append(Pending(Stage.DISTINCT))
    if block.limit is not None:
        found.append(Pending(Stage.TOP))
    return found


def _whole(block: Block) -> list[Pending]:
    """All of a block as one stage, named after its last one."""
    order = (
        (block.limit is not None, Stage.TOP),
        (block.distinct, Stage.DISTINCT),
        (block.aggregated, Stage.GROUP),
        (bool(block.joins), Stage.JOIN),
        (bool(block.where), Stage.REST),
    )
    return next(([Pending(stage, block.first, tuple(block.where))] for there, stage in order if there), [])


def single_filters(block: Block) -> list[Pending]:
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


def loose_order(block: Block) -> bool:
    """Whether a DISTINCT query sorts by something that it does not show."""
    return any(all(node != ordered.this for _, node in block.items) for ordered in block.order)
