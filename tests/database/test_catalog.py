"""Catalog and resolve_database: the layouts, the order of roots, and what a miss says."""

from pathlib import Path

import pytest

from verl_sql.database.catalog import Catalog, DatabaseNotFound, resolve_database


def touch(*paths: Path) -> None:
    """Make files."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


@pytest.mark.parametrize(
    "layout",
    [
        "{0}/{0}.sqlite",
        "database/{0}/{0}.sqlite",
        "dev_databases/{0}/{0}.sqlite",
        "train_databases/{0}/{0}.sqlite",
        "train/train_databases/{0}/{0}.sqlite",
        "spider/database/{0}/{0}.sqlite",
        "{0}.sqlite",
        "{0}.db",
        "{0}/{0}.db",
    ],
)
def test_layouts(tmp_path: Path, layout: str) -> None:
    for name in ("shop", "a.b c"):
        touch(tmp_path / layout.format(name))
    catalog = Catalog(tmp_path)
    assert catalog.path("shop") == tmp_path / layout.format("shop")
    assert catalog.path("a.b c") == tmp_path / layout.format("a.b c")
    assert catalog.db_ids() == ("a.b c", "shop")


def test_variants_stand_beside_the_canonical_file(tmp_path: Path) -> None:
    folder = tmp_path / "database" / "shop"
    touch(folder / "shop.sqlite", folder / "a1.sqlite", folder / "zz.sqlite", folder / "schema.sql")
    assert [p.name for p in Catalog(tmp_path).variants("shop")] == ["shop.sqlite", "a1.sqlite", "zz.sqlite"]
    touch(tmp_path / "flat.sqlite", tmp_path / "other.sqlite")
    assert Catalog(tmp_path).variants("flat") == (tmp_path / "flat.sqlite",)


@pytest.mark.parametrize("db_id", ["nope", "", "../shop", "a/b", ".", "..", "x\x00y"])
def test_a_miss_names_what_was_looked_for(tmp_path: Path, db_id: str) -> None:
    touch(tmp_path / "shop.sqlite")
    with pytest.raises(DatabaseNotFound, match=r"db_id|not found under"):
        Catalog(tmp_path).path(db_id)


def test_a_deleted_file_is_looked_for_again(tmp_path: Path) -> None:
    touch(tmp_path / "shop.sqlite")
    catalog = Catalog(tmp_path)
    catalog.path("shop")
    (tmp_path / "shop.sqlite").unlink()
    with pytest.raises(DatabaseNotFound):
        catalog.path("shop")
    touch(tmp_path / "shop" / "shop.sqlite")
    assert catalog.path("shop").parent.name == "shop"


def test_missing_root(tmp_path: Path) -> None:
    with pytest.raises(DatabaseNotFound, match="VERL_SQL_DB_ROOT"):
        Catalog(tmp_path / "nope")


def test_resolve_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path / "one" / "shop.sqlite", tmp_path / "two" / "shop.sqlite", tmp_path / "three.sqlite")
    info = {"db_id": "shop", "db_path": str(tmp_path / "three.sqlite")}
    monkeypatch.setenv("VERL_SQL_DB_ROOT", str(tmp_path / "two"))
    assert resolve_database("shop", str(tmp_path / "one"), info).parent.name == "one"
    assert resolve_database(None, None, info).parent.name == "two"
    monkeypatch.delenv("VERL_SQL_DB_ROOT")
    assert resolve_database("shop", None, info) == tmp_path / "three.sqlite"


@pytest.mark.parametrize(
    ("root", "info", "says"),
    [
        (None, None, "VERL_SQL_DB_ROOT"),
        (None, {}, "db_root"),
        (None, {"db_path": "/nowhere/x.sqlite"}, "/nowhere/x.sqlite"),
        (".", {}, "db_id"),
    ],
)
def test_resolve_says_what_to_set(
    root: str | None, info: dict | None, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VERL_SQL_DB_ROOT", raising=False)
    with pytest.raises(DatabaseNotFound, match=says):
        resolve_database(None, str(tmp_path) if root else None, info)
