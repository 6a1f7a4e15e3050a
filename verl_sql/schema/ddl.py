"""A database as plain CREATE TABLE statements, built from the introspected schema (not the stored text)."""

from verl_sql.database.introspect import Column, DatabaseSchema, Table, quote_name
from verl_sql.schema.descriptions import Descriptions

NO_DESCRIPTIONS = Descriptions()


def render_ddl(schema: DatabaseSchema, descriptions: Descriptions = NO_DESCRIPTIONS) -> str:
    """One CREATE TABLE statement a table, described columns with a comment at the line's end."""
    return "\n\n".join(_create_table(table, descriptions) for table in schema.tables)


def _create_table(table: Table, descriptions: Descriptions) -> str:
    """The statement of one table; comments stand after the comma, so that the text still runs."""
    entries = [(_column(column), descriptions.column_comment(table.name, column.name)) for column in table.columns]
    if table.primary_key:
        entries.append((f"PRIMARY KEY ({_names(table.primary_key)})", ""))
    for key in table.foreign_keys:
        referenced = f" ({_names(key.ref_columns)})" if all(key.ref_columns) else ""
        entries.append((f"FOREIGN KEY ({_names(key.columns)}) REFERENCES {quote_name(key.ref_table)}{referenced}", ""))
    lines = [
        f"    {text}{',' if number < len(entries) else ''}{f' -- {comment}' if comment else ''}"
        for number, (text, comment) in enumerate(entries, start=1)
    ]
    return "\n".join([f"CREATE TABLE {quote_name(table.name)} (", *lines, ");"])


def _column(column: Column) -> str:
    """`"name" TYPE [NOT NULL]`, the type as declared."""
    return " ".join(
        filter(None, [quote_name(column.name), column.declared_type, "" if column.nullable else "NOT NULL"])
    )


def _names(names: tuple[str, ...]) -> str:
    """Quoted names, separated by commas."""
    return ", ".join(quote_name(name) for name in names)
