"""A small database, and an executor that most tests of this room share."""

import hashlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from verl_sql.database.executor import Executor

SCRIPT = """
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL, "Home Town" TEXT);
INSERT INTO item VALUES (1,'bolt',1.5,'Rome'),(2,'nut',2.0,'Oslo'),(3,'nut',NULL,'Oslo'),(4,NULL,0.25,NULL);
CREATE TABLE empty_t(a INTEGER);
CREATE TABLE bad(k TEXT, s TEXT);
INSERT INTO bad VALUES ('ff',CAST(X'61FF62' AS TEXT)),('fe',CAST(X'61FE62' AS TEXT)),('ok','ab');
CREATE VIEW dear AS SELECT * FROM item WHERE price > 1;
"""


def build(path: Path, script: str = SCRIPT) -> Path:
    """A database file made from a script."""
    connection = sqlite3.connect(path)
    connection.executescript(script)
    connection.close()
    return path


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file of a folder with the digest of its content."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir()) if p.is_file()}


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small database that no test changes, alone in its folder."""
    return build(tmp_path_factory.mktemp("shop") / "shop.sqlite")


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """The same database, to be changed or broken."""
    return build(tmp_path / "fresh.sqlite")


@pytest.fixture(scope="session")
def executor() -> Iterator[Executor]:
    """Two workers, generous timeout."""
    with Executor(workers=2, timeout=20.0) as shared:
        yield shared
