"""Show less of a database: the items a gold query uses, a linker's selection, or both together."""

from dataclasses import dataclass
from enum import StrEnum

from verl_sql.database.introspect import DatabaseSchema, ForeignKey, Table
from verl_sql.sqltext.items import SchemaNames, schema_items


class SchemaScope(StrEnum):
    """How much of the database a prompt shows."""

    FULL = "full"
    """All of it."""
    GOLD_TABLES = "gold_tables"
    """Every column of the tables the gold query uses (Think2SQL)."""
    GOLD = "gold"
    """The tables and columns the gold query uses, and keys."""
    LINKED = "linked"
    """The linker's selection (Reasoning-SQL at inference)."""
    LINKED_AND_GOLD = "linked_and_gold"
    """The linker's selection united with the gold query's items (Reasoning-SQL in training)."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Tables and (table, column) pairs, all in lower case."""

    tables: frozenset[str] = frozenset()
    columns: frozenset[tuple[str, str]] = frozenset()

    def __or__(self, other: "Selection") -> "Selection":
        """What either selects."""
        return Selection(self.tables | other.tables, self.columns | other.columns)


def names_of(schema: DatabaseSchema) -> SchemaNames:
    """The schema's names, for reading a query's items; keep one a database."""
    return SchemaNames({t.name.lower(): frozenset(c.name.lower() for c in t.columns) for t in schema.tables})


def selection_of(sql: str, names: SchemaNames) -> Selection:
    """The tables and columns that a query uses."""
    items = schema_items(sql, names)
    return Selection(items.tables, items.columns)


def whole_tables(selection: Selection, schema: DatabaseSchema) -> Selection:
    """The selection's tables with all their columns."""
    tables = selection.tables | {table for table, _ in selection.columns}
    columns = {(t.name.lower(), c.name.lower()) for t in schema.tables if t.name.lower() in tables for c in t.columns}
    return Selection(tables, frozenset(columns))


def restrict(schema: DatabaseSchema, selection: Selection) -> DatabaseSchema:
    """What `selection` holds of `schema`, with the keys that identify and join its tables.

    Kept besides the selected columns: primary keys, and both ends of the foreign keys between selected tables. A
    selection of nothing that the schema has gives the whole schema, since a prompt without tables teaches nothing.
    """
    chosen = selection.tables | {table for table, _ in selection.columns}
    kept = [table for table in schema.tables if table.name.lower() in chosen]
    if not kept:
        return schema
    names = {table.name.lower() for table in kept}
    keys = {t.name: tuple(k for k in t.foreign_keys if k.ref_table.lower() in names) for t in kept}
    columns = selection.columns | {end for found in keys.values() for key in found for end in _ends(key)}
    return DatabaseSchema(schema.db_id, tuple(_narrow(table, keys[table.name], columns) for table in kept))


def _narrow(table: Table, keys: tuple[ForeignKey, ...], columns: frozenset[tuple[str, str]]) -> Table:
    """The table with the given columns and its primary key; with all columns if that leaves none."""
    name = table.name.lower()
    shown = tuple(c for c in table.columns if c.key_position or (name, c.name.lower()) in columns)
    return Table(table.name, shown or table.columns, keys)


def _ends(key: ForeignKey) -> set[tuple[str, str]]:
    """Both ends of a foreign key."""
    here = {(key.table.lower(), column.lower()) for column in key.columns}
    return here | {(key.ref_table.lower(), column.lower()) for column in key.ref_columns if column}
