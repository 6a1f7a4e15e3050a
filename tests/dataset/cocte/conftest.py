"""A small database for the conversion, and the conversions of real golds, made once."""

import json
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import pytest

from verl_sql.database.executor import Executor
from verl_sql.dataset.cocte.verify import Conversion, convert_all


@pytest.fixture(scope="session")
def executor():
    with Executor(workers=2, timeout=20.0) as running:
        yield running


@pytest.fixture(scope="session")
def shop_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database root that holds `shop`, built from shop.sql."""
    root = tmp_path_factory.mktemp("shop_root")
    (root / "shop").mkdir()
    connection = sqlite3.connect(root / "shop" / "shop.sqlite")
    connection.executescript((Path(__file__).parent / "shop.sql").read_text(encoding="utf-8"))
    connection.close()
    return root


@pytest.fixture(scope="session")
def shop(shop_root: Path) -> Path:
    return shop_root / "shop" / "shop.sqlite"


@dataclass(frozen=True)
class Converted:
    """One real gold and what became of it."""

    database: Path
    gold: str
    result: Conversion


@pytest.fixture(scope="session")
def spider(shared_dir: Path, executor: Executor) -> list[Converted]:
    """The Spider dev golds."""
    root = shared_dir / "data" / "spider_dev"
    entries = json.loads((root / "dev.json").read_text(encoding="utf-8"))
    queries = [(root / "database" / e["db_id"] / f"{e['db_id']}.sqlite", e["query"]) for e in entries]
    return [Converted(*q, r) for q, r in zip(queries, convert_all(queries, executor), strict=True)]


@pytest.fixture(scope="session")
def superhero(shared_dir: Path, executor: Executor) -> list[Converted]:
    """BIRD dev's golds about superhero."""
    root = shared_dir / "data" / "bird"
    database = root / "dev_databases" / "superhero" / "superhero.sqlite"
    entries = json.loads((root / "dev.json").read_text(encoding="utf-8"))
    queries = [(database, e["SQL"]) for e in entries if e["db_id"] == "superhero"]
    return [Converted(*q, r) for q, r in zip(queries, convert_all(queries, executor), strict=True)]
