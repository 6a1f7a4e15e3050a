"""What a grouped SELECT hands on: the pieces that stand in its step, and the rest reading them."""

from sqlglot import exp

from verl_sql.dataset.cocte.block import Block
from verl_sql.dataset.cocte.nodes import Node, column, is_aggregate, is_query, replaced, sql_of


def pieces_of(block: Block) -> list[Node]:
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


def read_pieces(block: Block, names: dict[str, tuple[str, str]]) -> None:
    """Let what is left of a grouped block read the step's columns."""

    def read(node: Node, nested: bool) -> Node | None:
        if isinstance(node, exp.Ordered) or (nested and not isinstance(node, exp.Column)):
            return None  # an ascending sort key reads like the bare expression
        new = names.get(sql_of(node)) if not is_query(node) else None
        return column(*new) if new else None

    block.change(lambda node: replaced(node, read))
