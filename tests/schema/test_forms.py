"""DDL, names only, enriched, and the one door to all forms."""

import sqlite3
from pathlib import Path

import pytest

from verl_sql.database.introspect import open_for_reading, read_schema
from verl_sql.schema.compact import render_compact
from verl_sql.schema.ddl import render_ddl
from verl_sql.schema.descriptions import load_descriptions
from verl_sql.schema.enriched import column_statistics, frequent_values
from verl_sql.schema.render import SchemaForm, descriptions_beside, render_schema


def test_ddl_runs_and_gives_the_same_schema(shop_file: Path, tmp_path: Path) -> None:
    text = render_ddl(read_schema(shop_file), load_descriptions(shop_file.parent / "database_description"))
    assert '"id" INTEGER, -- the unique number' in text
    sqlite3.connect(tmp_path / "shop.sqlite").executescript(text)
    assert read_schema(tmp_path / "shop.sqlite") == read_schema(shop_file)


def test_ddl_of_real_databases_runs(shared_dir: Path, tmp_path: Path) -> None:
    for file in sorted((shared_dir / "data/spider_dev/database").glob("*/*.sqlite")):
        copy = tmp_path / file.name
        sqlite3.connect(copy).executescript(render_ddl(read_schema(file)))
        assert [t.columns for t in read_schema(copy).tables] == [t.columns for t in read_schema(file).tables]


def test_compact(shop_file: Path) -> None:
    assert render_compact(read_schema(shop_file)) == (
        'shop(id, "shop name", opened, mail, note, price)\norder(shop_id, line)\norder.shop_id=shop.id'
    )


def test_enriched_entry(shop_file: Path) -> None:
    text = render_schema(shop_file, SchemaForm.ENRICHED, descriptions_beside(shop_file))
    assert "# Table: shop, 3 rows" in text
    assert "(id:INTEGER, the unique number, Primary Key, 3 distinct, 0 null, min 1, max 3, Values: [1, 2, 3])," in text
    assert "(price:DECIMAL, 2 distinct, 0 null, min 3, max 4.5, Values: [3.0, 4.5])" in text
    assert "(mail:TEXT, 2 distinct, 1 null)," in text
    assert "not null, 3 distinct" in text
    assert text.endswith("order.shop_id=shop.id")


def test_statistics_and_most_frequent_values(shop_file: Path) -> None:
    with open_for_reading(shop_file) as connection:
        statistics = column_statistics(connection, "shop", "price")
        assert (statistics.rows, statistics.distinct, statistics.nulls) == (3, 2, 0)
        assert frequent_values(connection, "shop", "price", 5) == [3, 4.5]


@pytest.mark.parametrize("form", SchemaForm)
def test_every_form_of_an_empty_database(form: SchemaForm, tmp_path: Path) -> None:
    sqlite3.connect(tmp_path / "e.sqlite").executescript("CREATE TABLE t (a, b)")
    text = render_schema(tmp_path / "e.sqlite", form)
    assert "t" in text
    assert "Examples" not in text


def test_unknown_form(shop_file: Path) -> None:
    with pytest.raises(ValueError, match="xml"):
        render_schema(shop_file, "xml")
