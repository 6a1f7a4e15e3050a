"""M-Schema: a database as the text that text-to-SQL models are prompted with.

Format of the reference code as of February 2025 (no `main.` prefix, foreign keys present); types are named as there.
Examples come in storage order, so that the same file always gives the same text.
"""

import sqlite3

from verl_sql.database.introspect import Column, DatabaseSchema, Table
from verl_sql.schema.descriptions import Descriptions
from verl_sql.schema.examples import SHOWN, column_examples

NO_DESCRIPTIONS = Descriptions()


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
    blocks = [render_table(table, connection, descriptions, examples) for table in schema.tables]
    parts = [f"【DB_ID】 {schema.db_id}", "【Schema】", *blocks, *foreign_key_section(schema)]
    return "\n".join(parts)


def render_table(
    table: Table, connection: sqlite3.Connection | None, descriptions: Descriptions, examples: int = SHOWN
) -> str:
    """The block of one table: its heading and one entry a column."""
    comment = descriptions.table_comment(table.name)
    heading = f"# Table: {table.name}" + (f", {comment}" if comment else "")
    entries = [_entry(table, column, connection, descriptions, examples) for column in table.columns]
    return "\n".join([heading, "[", ",\n".join(entries), "]"])


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
