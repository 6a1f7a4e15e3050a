"""Builds the sample databases: seeded rows, SQLite files, and BIRD's description CSVs."""

import csv
import datetime
import random
import sqlite3
from pathlib import Path

from verl_sql.dataset.sample.declarations import Column, Database, Role, Table

Row = tuple[int | str | None, ...]

_SYLLABLES = [a + b for a in "bdklmnrst" for b in "aeo"]
_NULL_SHARE = {Role.CATEGORY: 0.04, Role.NUMBER: 0.08, Role.DATE: 0.05, Role.PARENT: 0.05}
_SQL_TYPE = {Role.KEY: "INTEGER PRIMARY KEY", Role.NAME: "TEXT", Role.CATEGORY: "TEXT", Role.NUMBER: "INTEGER"}
_FIRST_DAY = datetime.date(2015, 1, 1)


def quoted(name: str) -> str:
    """The name as SQL: bare if it is a plain identifier and no keyword, else in backticks as in BIRD's golds."""
    plain = name.replace("_", "a").isalnum() and not name[0].isdigit()
    return name if plain and name.lower() not in {"order", "match", "left", "date"} else f"`{name}`"


def draw_rows(database: Database, seed: int) -> dict[str, list[Row]]:
    """Rows of both tables, by table name. Some parents have no child; some cells are NULL."""
    rng = random.Random(f"{seed}/{database.db_id}")
    parents = _draw_table(database.parent, rng, [])
    keys = [row[0] for row in parents]
    with_children = rng.sample(keys, int(len(keys) * 0.8))
    return {database.parent.name: parents, database.child.name: _draw_table(database.child, rng, with_children)}


def _draw_table(table: Table, rng: random.Random, parent_keys: list[int | str | None]) -> list[Row]:
    count = rng.randint(24, 40)
    names = rng.sample([a + b + c for a in _SYLLABLES for b in _SYLLABLES for c in _SYLLABLES], count)
    return [
        tuple(_draw_cell(column, index, names[index], rng, parent_keys) for column in table.columns)
        for index in range(count)
    ]


def _draw_cell(
    column: Column, index: int, name: str, rng: random.Random, parent_keys: list[int | str | None]
) -> int | str | None:
    if rng.random() < _NULL_SHARE.get(column.role, 0.0):
        return None
    match column.role:
        case Role.KEY:
            return index + 1
        case Role.NAME:
            return name.capitalize()
        case Role.CATEGORY:
            return rng.choice(column.values)
        case Role.NUMBER:
            return rng.randint(column.low, column.high)
        case Role.DATE:
            return (_FIRST_DAY + datetime.timedelta(days=rng.randint(0, 2500))).isoformat()
        case Role.PARENT:
            return rng.choice(parent_keys)


def write_database(database: Database, rows: dict[str, list[Row]], folder: Path) -> Path:
    """Write `<folder>/<db_id>/<db_id>.sqlite` and its `database_description/*.csv`; returns the SQLite file's path."""
    home = folder / database.db_id
    (home / "database_description").mkdir(parents=True, exist_ok=True)
    path = home / f"{database.db_id}.sqlite"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    try:
        for table in database.tables:
            connection.execute(_create_statement(database, table))
            marks = ", ".join("?" * len(table.columns))
            connection.executemany(f"INSERT INTO {quoted(table.name)} VALUES ({marks})", rows[table.name])
            _write_description(table, home / "database_description" / f"{table.name}.csv")
        connection.commit()
    finally:
        connection.close()
    return path


def _create_statement(database: Database, table: Table) -> str:
    def declare(column: Column) -> str:
        if column.role is Role.PARENT:
            target = f"{quoted(database.parent.name)} ({quoted(database.parent.key.name)})"
            return f"{quoted(column.name)} INTEGER REFERENCES {target}"
        return f"{quoted(column.name)} {_SQL_TYPE.get(column.role, 'DATE')}"

    return f"CREATE TABLE {quoted(table.name)} ({', '.join(map(declare, table.columns))})"


def _write_description(table: Table, path: Path) -> None:
    """One CSV a table in BIRD's five columns; only cryptic names get a description, as in BIRD many are empty."""
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["original_column_name", "column_name", "column_description", "data_format", "value_description"]
        )
        for column in table.columns:
            description = column.phrase if column.is_cryptic and column.role is not Role.KEY else ""
            kind = (
                "date"
                if column.role is Role.DATE
                else "text"
                if column.role in (Role.NAME, Role.CATEGORY)
                else "integer"
            )
            writer.writerow([column.name, column.name, description, kind, " ".join(column.values)])
