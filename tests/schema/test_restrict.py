"""Showing less of a database: gold items, whole tables, keys that join what is left."""

import sqlite3

import pytest

from verl_sql.database.introspect import DatabaseSchema, schema_of
from verl_sql.schema.restrict import Selection, names_of, restrict, selection_of, whole_tables

DDL = """
CREATE TABLE shop (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE item (sku TEXT PRIMARY KEY, label TEXT, price REAL, shop_id INT REFERENCES shop (id));
CREATE TABLE visit (day DATE, shop_id INT REFERENCES shop (id));
"""


@pytest.fixture
def schema() -> DatabaseSchema:
    connection = sqlite3.connect(":memory:")
    connection.executescript(DDL)
    return schema_of(connection, "d")


def shown(schema: DatabaseSchema) -> dict[str, list[str]]:
    return {table.name: [column.name for column in table.columns] for table in schema.tables}


def test_gold_items_with_the_keys_that_join_them(schema: DatabaseSchema) -> None:
    sql = "SELECT T2.label FROM shop T1 JOIN item T2 ON T1.id = T2.shop_id WHERE T1.city = 'x'"
    less = restrict(schema, selection_of(sql, names_of(schema)))
    assert shown(less) == {"shop": ["id", "city"], "item": ["sku", "label", "shop_id"]}
    assert [key.ref_table for key in less.foreign_keys] == ["shop"]


def test_keys_to_tables_that_are_left_out_go_with_them(schema: DatabaseSchema) -> None:
    less = restrict(schema, selection_of("SELECT label FROM item", names_of(schema)))
    assert shown(less) == {"item": ["sku", "label"]}
    assert less.foreign_keys == ()


def test_whole_tables(schema: DatabaseSchema) -> None:
    selection = whole_tables(selection_of("SELECT label FROM item", names_of(schema)), schema)
    assert shown(restrict(schema, selection)) == {"item": ["sku", "label", "price", "shop_id"]}


def test_a_table_of_which_nothing_is_selected_is_shown_whole(schema: DatabaseSchema) -> None:
    assert shown(restrict(schema, Selection(frozenset({"visit"})))) == {"visit": ["day", "shop_id"]}


def test_union_of_selections(schema: DatabaseSchema) -> None:
    both = Selection(frozenset({"shop"})) | Selection(columns=frozenset({("item", "price")}))
    assert shown(restrict(schema, both)) == {"shop": ["id"], "item": ["sku", "price", "shop_id"]}


def test_nothing_selected_shows_everything(schema: DatabaseSchema) -> None:
    assert restrict(schema, Selection(frozenset({"gone"}))) == schema
