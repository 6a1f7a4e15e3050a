"""A small database with odd names, NULLs, dates, keys and descriptions."""

import sqlite3
from pathlib import Path

import pytest

DDL = """
CREATE TABLE shop
    (id INTEGER PRIMARY KEY, "shop name" TEXT NOT NULL, opened DATE, mail TEXT, note TEXT, price DECIMAL(8,2));
INSERT INTO shop VALUES (1, 'Alpha', '2020-01-01', 'a@b.org', 'a note of more than twenty characters', 3);
INSERT INTO shop VALUES (2, 'Beta', '2021-01-01', 'c@d.org', NULL, 4.5);
INSERT INTO shop VALUES (3, '', NULL, NULL, '', 3);
CREATE TABLE "order" (shop_id INT, line INT, PRIMARY KEY (shop_id, line), FOREIGN KEY (shop_id) REFERENCES shop (id));
"""


@pytest.fixture(scope="session")
def shop_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("shop")
    connection = sqlite3.connect(folder / "shop.sqlite")
    connection.executescript(DDL)
    connection.close()
    descriptions = folder / "database_description"
    descriptions.mkdir()
    (descriptions / "shop.csv").write_bytes(
        b"\xef\xbb\xbforiginal_column_name,column_name,column_description,data_format,value_description,\r\n"
        b'id,,"the unique\r\nnumber",integer,,\r\n'
        b"shop name ,readable name,,text,,\r\n"
        b"gone,,not there,text,,\r\n"
    )
    (descriptions / "Order.csv").write_bytes(
        b"original_column_name,column_name,column_description,data_format,value_description\n"
        b'line,,position\x96from 1,integer,"commonsense evidence: 1 is\nthe first"\n'
    )
    return folder / "shop.sqlite"
