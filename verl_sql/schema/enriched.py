"""Enriched M-Schema (ReToolSQL): per column its type, meaning, nullability, statistics and representative values.

The paper's text names these parts but not their layout; this one extends M-Schema's entries:
`(name:TYPE, meaning, Primary Key, not null, 120 distinct, 3 null, min 1, max 90, Values: [a, b, c])`.
Representative values are the most frequent ones, ties in value order, under M-Schema's rule of what may be shown.
"""

import sqlite3
from dataclasses import dataclass
from typing import Any

from verl_sql.database.introspect import Column, DatabaseSchema, Table, quote_name
from verl_sql.schema.descriptions import Descriptions
from verl_sql.schema.examples import SAMPLED, choose_examples
from verl_sql.schema.mschema import Blocks, assemble

NO_DESCRIPTIONS = Descriptions()
SHOWN_LENGTH = 40


@dataclass(frozen=True, slots=True)
class ColumnStatistics:
    """Counts over all rows of a column; `smallest` and `largest` in SQLite's order, None without values."""

    rows: int
    distinct: int
    nulls: int
    smallest: Any
    largest: Any


def render_enriched(
    schema: DatabaseSchema, connection: sqlite3.Connection, descriptions: Descriptions = NO_DESCRIPTIONS
) -> str:
    """The enriched M-Schema text of `schema`; reads every column of every table once for its statistics."""
    return assemble(schema, enriched_blocks(schema, connection, descriptions))


def enriched_blocks(
    schema: DatabaseSchema, connection: sqlite3.Connection, descriptions: Descriptions = NO_DESCRIPTIONS
) -> Blocks:
    """The pieces of the enriched text, each table with its number of rows in the heading."""
    headings, entries = {}, {}
    for table in schema.tables:
        (rows,) = connection.execute(f"SELECT count(*) FROM {quote_name(table.name)}").fetchone()
        comment = descriptions.table_comment(table.name)
        headings[table.name] = f"# Table: {table.name}, {rows} rows" + (f", {comment}" if comment else "")
        for column in table.columns:
            entries[table.name, column.name] = _entry(table, column, connection, descriptions)
    return Blocks(headings, entries)


def column_statistics(connection: sqlite3.Connection, table: str, column: str) -> ColumnStatistics:
    """Statistics of one column."""
    name = quote_name(column)
    row = connection.execute(
        f"SELECT count(*), count(DISTINCT {name}), count(*) - count({name}), min({name}), max({name}) "
        f"FROM {quote_name(table)}"
    ).fetchone()
    return ColumnStatistics(*row)


def frequent_values(connection: sqlite3.Connection, table: str, column: str, limit: int) -> list[Any]:
    """The `limit` most frequent values, ties in value order."""
    name = quote_name(column)
    query = (
        f"SELECT {name} FROM {quote_name(table)} WHERE {name} IS NOT NULL AND {name} <> '' "
        f"GROUP BY {name} ORDER BY count(*) DESC, {name} LIMIT {int(limit)}"
    )
    return [value for (value,) in connection.execute(query)]


def _entry(table: Table, column: Column, connection: sqlite3.Connection, descriptions: Descriptions) -> str:
    """The entry of one column."""
    statistics = column_statistics(connection, table.name, column.name)
    values = choose_examples(frequent_values(connection, table.name, column.name, SAMPLED), column.type_name)
    parts = [
        f"{column.name}:{column.type_name}",
        descriptions.column_comment(table.name, column.name),
        "Primary Key" if column.key_position else "",
        "" if column.nullable else "not null",
        f"{statistics.distinct} distinct",
        f"{statistics.nulls} null",
        *_range(statistics, bool(values)),
        f"Values: [{', '.join(values)}]" if values else "",
    ]
    return f"({', '.join(filter(None, parts))})"


def _range(statistics: ColumnStatistics, shown: bool) -> list[str]:
    """`min …` and `max …`; nothing where values may not be shown (addresses, blobs, long texts) or there are none."""
    texts = [str(statistics.smallest), str(statistics.largest)]
    if not shown or statistics.smallest is None or any(len(text) > SHOWN_LENGTH for text in texts):
        return []
    return [f"min {texts[0]}", f"max {texts[1]}"]
