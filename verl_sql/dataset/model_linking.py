"""Schema linking by a language model behind an endpoint (Reasoning-SQL §4 filters schemas so, after CHESS).

The model sees the whole schema, the question and the hint, never the gold. Names that the schema does not have are left
out of the selection and told. A question without a usable reply is linked by names and values instead.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from verl_sql.database.introspect import DatabaseSchema
from verl_sql.dataset.chats import chat_of
from verl_sql.dataset.example import Example
from verl_sql.generation.asked import Asked, Unusable
from verl_sql.generation.asking import Ask, Asker
from verl_sql.generation.replies import UnusableReply, read_object
from verl_sql.schema.restrict import Selection


@dataclass(frozen=True, slots=True)
class Linked:
    """What a model selected of a schema, and the names it wrote that the schema does not have."""

    selection: Selection
    unknown: tuple[str, ...] = ()


class ModelLinker:
    """Asks one endpoint; usable replies are remembered in `replies`."""

    def __init__(self, endpoint: Asked, replies: str | None = None) -> None:
        """Nothing is sent yet."""
        self._asker = Asker(endpoint, replies)

    def link(self, asked: Sequence[tuple[Example, DatabaseSchema, str]]) -> list[Linked | Unusable]:
        """The selection for each (example, schema, its text), in their order.

        Raises:
            AskingError: the endpoint is at fault.
        """
        return self._asker.ask([_question(*one) for one in asked])


def _question(example: Example, schema: DatabaseSchema, text: str) -> Ask[Linked]:
    """What the model is asked."""
    chat = chat_of("schema_linking", schema=text, question=example.question, evidence=example.evidence)
    return Ask(chat, partial(read_selection, schema=schema))


def read_selection(reply: str, schema: DatabaseSchema) -> Linked:
    """The selection in a reply; names are compared without regard to case and to a table's name before a column's.

    Raises:
        UnusableReply: it is not of the form that was asked for, or it names nothing of the schema.
    """
    known = {table.name.lower(): {column.name.lower() for column in table.columns} for table in schema.tables}
    unknown: list[str] = []
    tables, columns = set(), set()
    for table, names in read_object(reply, {"tables": dict})["tables"].items():
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise UnusableReply(f"the columns of {table!r} are no list of names")
        own = table.strip().lower()
        if own not in known:
            unknown.append(table)
            continue
        tables.add(own)
        for name in names:
            column = name.strip().lower().removeprefix(f"{own}.")
            if column in known[own]:
                columns.add((own, column))
            else:
                unknown.append(f"{table}.{name}")
    if not tables:
        raise UnusableReply(f"nothing of the schema is named, only {', '.join(unknown[:5]) or 'nothing'}")
    return Linked(Selection(frozenset(tables), frozenset(columns)), tuple(unknown))
