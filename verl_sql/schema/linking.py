"""Schema linking without a model: which tables and columns does a question speak of?

Two signs. A name: words of the question and the evidence against the words of table and column names and of their
descriptions, plurals cut; words that say little (`name`, `id`) count only in tables found otherwise. A value: runs of
words of the question, or quoted parts of it, that are a cell of a text column. Tables that a foreign-key path needs to
join the found ones are added. Recall matters more than precision: what is left out cannot be used, what is too much
only costs tokens.
"""

import re
import sqlite3
from collections import defaultdict
from dataclasses import dataclass

from verl_sql.database.introspect import DatabaseSchema, Table, quote_name
from verl_sql.schema.descriptions import Descriptions
from verl_sql.schema.restrict import Selection

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")
_QUOTED = re.compile(r"'([^']{1,60})'|\"([^\"]{1,60})\"|`([^`]{1,60})`")
LONGEST_RUN = 6
VALUES_A_COLUMN = 5_000
_COMMON = frozenset(
    _WORD.findall(
        """a an and are as at by for from has have how in is it its list many me more most number of on or show than
        that the their there they this to was were what when where which who whose with name id all each give find"""
    )
)
# Columns that a question asks for without naming them: "which singers …?" wants their names.
_LABELS = frozenset({"name", "title"})

Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class LinkIndex:
    """What a question is looked up in; one a database.

    Attributes:
        schema: the database's schema.
        words: word -> (table, column) places whose names or descriptions have it; the column is "" for a table's name.
        values: cell in lower case -> places that hold it.
        neighbours: table -> tables that a foreign key joins it with, all in lower case.
    """

    schema: DatabaseSchema
    words: dict[str, set[Place]]
    values: dict[str, set[Place]]
    neighbours: dict[str, set[str]]


def build_index(
    schema: DatabaseSchema, connection: sqlite3.Connection | None, descriptions: Descriptions | None = None
) -> LinkIndex:
    """The index of one database; without a connection it has no values.

    At most 5,000 distinct values of a text column, up to 60 characters each, are read.
    """
    words: dict[str, set[Place]] = defaultdict(set)
    values: dict[str, set[Place]] = defaultdict(set)
    neighbours: dict[str, set[str]] = defaultdict(set)
    for table in schema.tables:
        for word in name_words(table.name):
            words[word].add((table.name.lower(), ""))
        for column in table.columns:
            place = (table.name.lower(), column.name.lower())
            comment = descriptions.column(table.name, column.name) if descriptions else None
            for word in name_words(column.name) | (name_words(comment.name) if comment else set()):
                words[word].add(place)
            for value in _text_values(connection, table, column.name) if connection is not None else ():
                values[value].add(place)
        for key in table.foreign_keys:
            neighbours[table.name.lower()].add(key.ref_table.lower())
            neighbours[key.ref_table.lower()].add(table.name.lower())
    return LinkIndex(schema, dict(words), dict(values), dict(neighbours))


def link(index: LinkIndex, question: str, evidence: str = "") -> Selection:
    """What `question` and `evidence` speak of; nothing found selects nothing."""
    text = f"{question}\n{evidence}"
    asked = {stem(word) for word in _WORD.findall(text.lower())}
    asked |= {stem(word) for part in _CAMEL.split(text) for word in _WORD.findall(part.lower())}
    found = {place for word in asked - _COMMON for place in index.words.get(word, ())}
    found |= {place for run in _runs(text) for place in index.values.get(run, ())}
    tables = {table for table, _ in found}
    tables |= _joining(index.neighbours, tables)
    weak = {place for word in (asked & _COMMON) | _LABELS for place in index.words.get(word, ()) if place[0] in tables}
    return Selection(frozenset(tables), frozenset(place for place in found | weak if place[1]))


def name_words(name: str) -> set[str]:
    """The words of a name: split at underscores, spaces and capitals, lower case, plurals cut."""
    parts = {stem(word) for part in _CAMEL.split(name) for word in _WORD.findall(part.lower())}
    return parts | {stem(name.lower())}


def stem(word: str) -> str:
    """The word without a plural ending."""
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 4 and word.endswith(("ses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _text_values(connection: sqlite3.Connection, table: Table, column: str) -> list[str]:
    """Distinct text cells of a column, lower case."""
    name = quote_name(column)
    query = (
        f"SELECT DISTINCT {name} FROM {quote_name(table.name)} "
        f"WHERE typeof({name}) = 'text' AND length({name}) BETWEEN 2 AND 60 LIMIT {VALUES_A_COLUMN}"
    )
    return [value.strip().lower() for (value,) in connection.execute(query)]


def _runs(text: str) -> set[str]:
    """Everything in the text that may be a cell: quoted parts, and runs of up to six words as they stand there."""
    quoted = {part.strip().lower() for groups in _QUOTED.findall(text) for part in groups if part.strip()}
    spans = [match.span() for match in _WORD.finditer(text)]
    lowered = text.lower()
    runs = {
        lowered[spans[first][0] : spans[last][1]]
        for first in range(len(spans))
        for last in range(first, min(first + LONGEST_RUN, len(spans)))
    }
    return (quoted | runs) - _COMMON


def _joining(neighbours: dict[str, set[str]], tables: set[str]) -> set[str]:
    """Tables that lie between two found tables which no foreign key joins directly."""
    return {middle for middle, joined in neighbours.items() if middle not in tables and len(joined & tables) > 1}
