"""Schema items on cases read by hand, and on every gold of Spider dev."""

import json
from pathlib import Path

import pytest

from verl_sql.database.introspect import read_schema
from verl_sql.sqltext.items import UNKNOWN, SchemaNames, schema_items

NAMES = SchemaNames({"team": frozenset({"id", "name", "city"}), "player": frozenset({"id", "name", "age", "team_id"})})
CASES = [
    json.loads(line) for line in (Path(__file__).parent / "item_cases.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=[case["why"] for case in CASES])
def test_items(case: dict):
    items = schema_items(case["sql"], NAMES)
    assert items.tables == set(case["tables"].split())
    assert {".".join(pair) for pair in items.columns} == set(case["columns"].split())
    assert items.parsed is case.get("parsed", True)


def test_without_a_schema_a_single_table_owns_its_columns():
    items = schema_items("SELECT t.a, b FROM t JOIN u ON t.x = u.y")
    assert items.tables == {"t", "u"}
    assert items.columns == {("t", "a"), ("t", "x"), ("u", "y"), (UNKNOWN, "b")}


def test_very_deep_queries_fall_back_to_words():
    items = schema_items("SELECT name FROM team WHERE " + "NOT " * 5000 + "1", NAMES)
    assert (items.parsed, items.tables) == (False, {"team"})


def test_every_spider_gold_resolves(shared_dir: Path):
    folder = shared_dir / "data" / "spider_dev"
    names: dict[str, SchemaNames] = {}
    for row in json.loads((folder / "dev.json").read_text(encoding="utf-8")):
        db_id = row["db_id"]
        if db_id not in names:
            tables = read_schema(folder / "database" / db_id / f"{db_id}.sqlite").tables
            names[db_id] = SchemaNames({t.name.lower(): frozenset(c.name.lower() for c in t.columns) for t in tables})
        items = schema_items(row["query"], names[db_id])
        assert items.parsed
        assert items.tables <= names[db_id].columns.keys()
        assert all(column in names[db_id].columns[table] for table, column in items.columns)
