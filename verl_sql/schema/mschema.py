"""M-Schema: a database as the text that text-to-SQL models are prompted with.

Format of the reference code as of February 2025 (no `main.` prefix, foreign keys present); types are named as there.
Examples come in storage order, so that the same file always gives the same text. The database is read once for all its
columns (`mschema_blocks`); the text of any part of it is then put together without reading it again (`assemble`).
"""

import sqlite3
from dataclasses import dataclass

from verl_sql.database.introspect import Column, DatabaseSchema, Table
from verl_sql.schema.descriptions import Descriptions
from verl_sql.schema.examples import SHOWN, column_examples

NO_DESCRIPTIONS = Descriptions()


@dataclass(frozen=True, slots=True)
class Blocks:
    """The pieces of an M-Schema text: the heading of each table and the entry of each (table, column)."""

    headings: dict[str, str]
    entries: dict[tuple[str, str], str]


def render_mschema(
    schema: DatabaseSchema,
    connection: sqlite3.Connection | None = None,
    descriptions: Descriptions = NO_DESCRIPTIONS,
    examples: int = SHOWN,
) -> str:
    """M-Schema text of `schema`.

    Args:
        schema: what to show; a restricted schema shows only what it holds.
        connection: where example values are read; without one there are no examples.
        descriptions: comments of tables and columns.
        examples: at most this many examples a column; the reference code shows three.
    """
    return assemble(schema, mschema_blocks(schema, connection, descriptions, examples))


def mschema_blocks(
    schema: DatabaseSchema,
    connection: sqlite3.Connection | None,
    descriptions: Descriptions = NO_DESCRIPTIONS,
    examples: int = SHOWN,
) -> Blocks:
    """The pieces of the M-Schema text of `schema`, every column read once."""
    headings, entries = {}, {}
    for table in schema.tables:
        comment = descriptions.table_comment(table.name)
        headings[table.name] = f"# Table: {table.name}" + (f", {comment}" if comment else "")
        for column in table.columns:
            entries[table.name, column.name] = _entry(table, column, connection, descriptions, examples)
    return Blocks(headings, entries)


def assemble(schema: DatabaseSchema, blocks: Blocks) -> str:
    """The text of `schema` from pieces of it or of a larger schema of the same database."""
    tables = [table_block(table, blocks) for table in schema.tables]
    return "\n".join([f"【DB_ID】 {schema.db_id}", "【Schema】", *tables, *foreign_key_section(schema)])


def table_block(table: Table, blocks: Blocks) -> str:
    """The block of one table: its heading and one entry a column."""
    entries = ",\n".join(blocks.entries[table.name, column.name] for column in table.columns)
    return "\n".join([blocks.headings[table.name], "[", entries, "]"])


def foreign_key_section(schema: DatabaseSchema) -> list[str]:
    """The heading and one `t1.c1=t2.c2` line a column pair; nothing when there are no foreign keys."""
    lines = [
        f"{key.table}.{column}={key.ref_table}.{referenced}"
        for key in schema.foreign_keys
        for column, referenced in zip(key.columns, key.ref_columns, strict=False)
    ]
    return ["【Foreign keys】", *dict.fromkeys(lines)] if lines else []


def _entry(
    table: Table, column: Column, connection: sqlite3.Connection | None, descriptions: Descriptions, examples: int
) -> str:
    """`(name:TYPE[, comment][, Primary Key][, Examples: […]])` of one column."""
    parts = [f"{column.name}:{column.type_name}"]
    if comment := descriptions.column_comment(table.name, column.name):
        parts.append(comment)
    if column.key_position:
        parts.append("Primary Key")
    values = column_examples(connection, table.name, column, examples) if connection is not None else []
    if values:
        parts.append(f"Examples: [{', '.join(values)}]")
    return f"({', '.join(parts)})"
