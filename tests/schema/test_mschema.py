"""M-Schema: exact text of a small database, and the reference's texts block by block."""

import json
import re
from pathlib import Path

import pytest

from verl_sql.database.introspect import DatabaseSchema, open_for_reading, read_schema
from verl_sql.schema.descriptions import Descriptions, load_descriptions
from verl_sql.schema.mschema import foreign_key_section, mschema_blocks, render_mschema, table_block

SHOP = """【DB_ID】 shop
【Schema】
# Table: shop
[
(id:INTEGER, the unique number, Primary Key, Examples: [1, 2, 3]),
(shop name:TEXT, readable name, Examples: [Alpha, Beta]),
(opened:DATE, Examples: [2020-01-01]),
(mail:TEXT),
(note:TEXT, Examples: [a note of more than twenty characters]),
(price:DECIMAL, Examples: [3.0, 4.5])
]
# Table: order
[
(shop_id:INTEGER, Primary Key),
(line:INTEGER, position–from 1, Primary Key)
]
【Foreign keys】
order.shop_id=shop.id"""
# The reference reads BOOLEAN columns through SQLAlchemy, which turns 'T', 'F' and any other text into True: a known
# bug of it. Ours shows the values that are stored.
BOOLEAN_BUG = {
    ("concert_singer", "Is_male"),
    ("employee_hire_evaluation", "Is_full_time"),
    ("orchestra", "If_first_show"),
}
EXAMPLES = re.compile(r"Examples: \[(.*)\]", re.DOTALL)


def test_text_of_a_small_database(shop_file: Path) -> None:
    descriptions = load_descriptions(shop_file.parent / "database_description")
    with open_for_reading(shop_file) as connection:
        assert render_mschema(read_schema(shop_file), connection, descriptions) == SHOP


def test_without_examples_and_foreign_keys(shop_file: Path) -> None:
    schema = DatabaseSchema("one", read_schema(shop_file).tables[:1])
    text = render_mschema(schema)
    assert "Examples" not in text
    assert "Foreign keys" not in text
    assert text.endswith("(price:DECIMAL)\n]")


def test_same_text_every_time(shop_file: Path) -> None:
    texts = set()
    for _ in range(3):
        with open_for_reading(shop_file) as connection:
            texts.add(render_mschema(read_schema(shop_file), connection))
    assert len(texts) == 1


def reference_files(shared: Path) -> list[Path]:
    return sorted((shared / "parity/mschema").glob("*.json"))


def database_file(shared: Path, db_id: str) -> Path:
    spider = shared / f"data/spider_dev/database/{db_id}/{db_id}.sqlite"
    return spider if spider.is_file() else shared / f"data/bird/dev_databases/{db_id}/{db_id}.sqlite"


def test_blocks_equal_the_reference(shared_dir: Path) -> None:
    files = reference_files(shared_dir)
    assert len(files) == 20
    for file in files:
        reference = json.loads(file.read_text(encoding="utf-8"))
        path = database_file(shared_dir, reference["db_id"])
        with open_for_reading(path) as connection:
            schema = read_schema(path)
            blocks = mschema_blocks(schema, connection, Descriptions())
            for table in schema.tables:
                ours = table_block(table, blocks)
                compare_blocks(ours, reference["blocks"][table.name], reference, table.name)


def compare_blocks(ours: str, theirs: str, reference: dict, table: str) -> None:
    """Entries equal but for which examples stand there; those are values of the column, as many as theirs."""
    our_entries, their_entries = (text.removesuffix(")\n]").split("),\n(") for text in (ours, theirs))
    assert len(our_entries) == len(their_entries)
    for our_entry, their_entry in zip(our_entries, their_entries, strict=True):
        assert EXAMPLES.sub("", our_entry) == EXAMPLES.sub("", their_entry)
        if our_entry == their_entry:
            continue
        column = our_entry.removeprefix(f"# Table: {table}\n[\n(").split(":")[0]
        allowed = reference["columns"][f"{table}.{column}"]["values"]
        shown = EXAMPLES.search(our_entry).group(1).split(", ")
        if (reference["db_id"], column) in BOOLEAN_BUG:
            assert set(shown) <= {"T", "F", "Glebe Park", "Fir Park", "St. Mirren Park", "Hampden Park"}
        else:
            assert set(shown) <= set(allowed)
            assert len(shown) == len(EXAMPLES.search(their_entry).group(1).split(", "))


def test_foreign_keys_equal_the_reference(shared_dir: Path) -> None:
    for file in reference_files(shared_dir):
        reference = json.loads(file.read_text(encoding="utf-8"))
        for table in read_schema(database_file(shared_dir, reference["db_id"])).tables:
            lines = foreign_key_section(DatabaseSchema("one", (table,)))[1:]
            assert lines == reference["fk_lines"].get(table.name, [])


@pytest.mark.parametrize("db_id", ["concert_singer", "world_1", "superhero"])
def test_whole_text_has_the_reference_lines(shared_dir: Path, db_id: str) -> None:
    path = database_file(shared_dir, db_id)
    reference = (shared_dir / f"parity/mschema/{db_id}.txt").read_text(encoding="utf-8")
    with open_for_reading(path) as connection:
        ours = render_mschema(read_schema(path), connection)
    assert ours.splitlines()[:2] == reference.splitlines()[:2]
    assert sorted(line for line in ours.splitlines() if "=" in line) == sorted(
        line for line in reference.splitlines() if "=" in line
    )
