"""Golds against empty databases: BIRD's and Spider's, and scripts of strangers."""

import json
from collections import Counter
from pathlib import Path

import pytest

from verl_sql.dataset.compiling import CompileCheck, compile_errors, script_database
from verl_sql.dataset.example import Example
from verl_sql.dataset.reasons import Reason
from verl_sql.dataset.tables_json import read_tables, schema_from

ENTRY = {
    "db_id": "d",
    "table_names_original": ["order", "item"],
    "column_names_original": [[-1, "*"], [0, "id"], [0, "Home Town"], [1, "order_id"], [1, "line"], [1, "at"]],
    "column_types": ["text", "number", "text", "integer", "boolean", "time"],
    "primary_keys": [1, [3, 4]],
    "foreign_keys": [[3, 1]],
}


def test_schema_from_an_entry() -> None:
    schema = schema_from(ENTRY)
    assert [(c.name, c.declared_type) for c in schema.tables[0].columns] == [("id", "NUMERIC"), ("Home Town", "TEXT")]
    assert schema.tables[1].primary_key == ("order_id", "line")
    assert [(k.table, k.columns, k.ref_table) for k in schema.foreign_keys] == [("item", ("order_id",), "order")]


def test_messages_by_id() -> None:
    golds = [
        ("1", "d", 'SELECT `Home Town` FROM "order"'),
        ("2", "d", "SELECT a FROM item"),
        ("3", "gone", "SELECT 1"),
        ("4", "d", "SELECT 1; SELECT 2"),
        ("5", "d", "DROP TABLE item"),
        ("6", "d", "SELECT line FROM item"),
    ]
    errors = compile_errors({"d": schema_from(ENTRY)}, golds)
    assert errors == {
        "2": "no such column: a",
        "3": "no schema of 'gone'",
        "4": "You can only execute one statement at a time.",
    }


def test_bird_train_has_350_that_cannot_compile(shared_dir: Path) -> None:
    lines = (shared_dir / "data/bird/train/train_gold.sql").read_text(encoding="utf-8").splitlines()
    golds = [(str(number), *reversed(line.rsplit("\t", 1))) for number, line in enumerate(lines)]
    errors = compile_errors(read_tables(shared_dir / "data/bird/train/train_tables.json"), golds)
    databases = {number: db_id for number, db_id, _ in golds}
    assert len(golds) == 9428
    assert Counter(databases[number] for number in errors) == {
        "retail_world": 330,
        "works_cycles": 10,
        "app_store": 6,
        "shooting": 4,
    }


def test_all_of_bird_dev_and_spider_dev_compile(shared_dir: Path) -> None:
    for folder, tables, gold in (("bird", "dev_tables.json", "SQL"), ("spider_dev", "tables.json", "query")):
        rows = json.loads((shared_dir / f"data/{folder}/dev.json").read_text(encoding="utf-8"))
        schemas = read_tables(shared_dir / f"data/{folder}/{tables}")
        assert compile_errors(schemas, ((str(r["question_id"]), r["db_id"], r[gold]) for r in rows)) == {}


def example(sql: str, script: str) -> Example:
    return Example("x", "train", "0", "none", "?", "", sql, schema_text=script)


def test_an_examples_own_statements() -> None:
    check = CompileCheck({})
    script = "CREATE TABLE t (a INT, b VARCHAR(3)); CREATE TABLE u (c)"
    assert check.findings(example("SELECT a FROM t JOIN u ON c = a", script)) == []
    (finding,) = check.findings(example("SELECT c FROM t", script))
    assert (finding.reason, finding.detail) == (Reason.GOLD_UNCOMPILABLE, "no such column: c")
    assert check.findings(example("SELECT 1", ""))[0].reason is Reason.NO_DATABASE
    assert "its schema" in check.findings(example("SELECT 1", "CREATE TABEL t (a)"))[0].detail


@pytest.mark.parametrize(
    "script",
    [
        "ATTACH '{}' AS other",
        "VACUUM INTO '{}'",
        "PRAGMA journal_mode = WAL",
        "CREATE TABLE t AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    ],
)
def test_scripts_of_strangers_reach_no_file_and_end(tmp_path: Path, script: str) -> None:
    assert isinstance(script_database(script.format(tmp_path / "other.db")), str)
    assert list(tmp_path.iterdir()) == []
