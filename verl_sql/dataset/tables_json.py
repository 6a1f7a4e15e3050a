"""Spider's and BIRD's `tables.json`: schemas without their databases.

One entry lists names by position: `column_names_original` holds `[table index, name]` with `[-1, "*"]` first,
`primary_keys` column positions (a list of them for a composite key), `foreign_keys` pairs of positions.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from verl_sql.database.introspect import Column, DatabaseSchema, ForeignKey, Table

# Spider says number, time, boolean, others; BIRD says SQLite's own names.
_TYPES = {"number": "NUMERIC", "time": "TEXT", "others": "TEXT", "boolean": "INTEGER"}


def read_tables(path: str | Path) -> dict[str, DatabaseSchema]:
    """db_id -> schema, from a `tables.json`.

    Raises:
        FileNotFoundError: there is no such file.
        KeyError: an entry lacks a field of the layout.
    """
    return {entry["db_id"]: schema_from(entry) for entry in json.loads(Path(path).read_text(encoding="utf-8"))}


def schema_from(entry: Mapping[str, Any]) -> DatabaseSchema:
    """The schema in one entry of `tables.json`."""
    names = [str(name) for _, name in entry["column_names_original"]]
    owners = [int(owner) for owner, _ in entry["column_names_original"]]
    tables = [str(name) for name in entry["table_names_original"]]
    keys = [tuple(key) if isinstance(key, list) else (key,) for key in entry["primary_keys"]]
    places = {column: place for key in keys for place, column in enumerate(key, start=1)}
    types = entry["column_types"]
    columns: list[list[Column]] = [[] for _ in tables]
    for position, owner in enumerate(owners):
        if owner >= 0:
            kind = str(types[position])
            column = Column(names[position], _TYPES.get(kind, kind.upper()), key_position=places.get(position, 0))
            columns[owner].append(column)
    foreign = _foreign_keys(entry["foreign_keys"], names, owners, tables)
    made = (Table(name, tuple(columns[i]), tuple(foreign.get(i, ()))) for i, name in enumerate(tables))
    return DatabaseSchema(str(entry["db_id"]), tuple(made))


def _foreign_keys(
    pairs: Iterable[Any], names: list[str], owners: list[int], tables: list[str]
) -> dict[int, list[ForeignKey]]:
    """Table position -> its foreign keys; each pair is one key of one column."""
    found: dict[int, list[ForeignKey]] = {}
    for column, referenced in pairs:
        owner, target = owners[column], owners[referenced]
        if owner >= 0 and target >= 0:
            key = ForeignKey(tables[owner], (names[column],), tables[target], (names[referenced],))
            found.setdefault(owner, []).append(key)
    return found
