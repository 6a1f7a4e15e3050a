"""The schema-linking terms: overlap of the tables and columns that the two queries name."""

from functools import lru_cache
from pathlib import Path

from verl_sql.database.introspect import read_schema
from verl_sql.rewards.sample import Sample
from verl_sql.sqltext.items import SchemaItems, SchemaNames, schema_items
from verl_sql.sqltext.similarity import jaccard


def schema_jaccard(sample: Sample) -> float:
    """Jaccard of schema items, tables and table.column together (Reasoning-SQL §3.2, schema linking)."""
    if not sample.sql:
        return 0.0
    pred, gold = items_of(sample)
    return jaccard(pred.all, gold.all)


def tables_superset(sample: Sample) -> float:
    """1 when the prediction's tables include the gold's (ReToolSQL, Table 1, R_tables), else 0."""
    if not sample.sql:
        return 0.0
    pred, gold = items_of(sample)
    return float(pred.tables >= gold.tables)


def columns_jaccard(sample: Sample) -> float:
    """Jaccard of the columns as table.column (ReToolSQL, Table 1, R_columns)."""
    if not sample.sql:
        return 0.0
    pred, gold = items_of(sample)
    return jaccard(pred.columns, gold.columns)


def parsed(sample: Sample) -> float:
    """1 when sqlglot could read the prediction; 0 says that its items and clauses were read off its words."""
    return float(bool(sample.sql) and items_of(sample)[0].parsed)


def items_of(sample: Sample) -> tuple[SchemaItems, SchemaItems]:
    """Items of prediction and gold, resolved against the sample's database."""
    names = names_of(sample.database)
    return schema_items(sample.sql, names), schema_items(sample.gold, names)


def names_of(database: Path) -> SchemaNames:
    """Table and column names of a database file, read once for each state of the file."""
    state = database.stat()
    return _names(str(database), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=512)
def _names(database: str, mtime_ns: int, size: int) -> SchemaNames:
    """The names behind a path; time and size are part of the key only."""
    tables = read_schema(database).tables
    return SchemaNames({t.name.lower(): frozenset(c.name.lower() for c in t.columns) for t in tables})
