"""The names of steps and of their columns, from the block that becomes a step."""

from collections.abc import Sequence

from sqlglot import exp

from verl_sql.dataset.cocte.block import Block, Source
from verl_sql.dataset.cocte.names import filter_name, group_name, join_name, slug, step_name, top_name, value_name
from verl_sql.dataset.cocte.nodes import aggregates
from verl_sql.dataset.cocte.plan import Pending, Stage
from verl_sql.dataset.cocte.resolve import unique


def block_name(block: Block, last: Pending) -> str:
    """The name of a block whose last stage is `last`."""
    if last.stage is Stage.TOP:
        first = block.order[0] if block.order else None
        key = slug(value_name(first.this, block.counted)) if first is not None else ""
        descending = bool(first is not None and first.args.get("desc"))
        return top_name(block.noun, key, descending, limit_of(block), block.offset is not None)
    if last.stage is Stage.DISTINCT:
        return step_name(f"distinct_{'_and_'.join(n for n, _ in block.items)}", f"distinct_{block.noun}")
    if last.stage is Stage.GROUP:
        values = [name for name, node in block.items if aggregates(node)]
        groups = [slug(g.name) or slug(value_name(g, block.noun)) for g in block.group]
        return group_name(values, groups, block.counted)
    if last.stage is Stage.JOIN:
        return joined_name(block)
    return filter_name(block.noun, last.conditions)


def joined_name(block: Block) -> str:
    """The name of a block's sources put together."""
    return join_name([slug(source.name) for source in block.sources], [source.noun for source in block.sources])


def values_name(columns: Sequence[str], source: Source) -> str:
    """The name of the different values that some columns of a table or step hold."""
    what = "_and_".join(columns)
    return step_name(f"{what}_of_{slug(source.name)}", f"{what}_of_{source.noun}", f"values_of_{source.noun}")


def limit_of(block: Block) -> str:
    """The number of a LIMIT without OFFSET, as text; empty for anything else."""
    value = block.limit.expression if block.limit is not None else None
    return str(value.this) if isinstance(value, exp.Literal) else ""


def column_names(used: Sequence[tuple[str, str]], sources: Sequence[Source]) -> dict[tuple[str, str], str]:
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
