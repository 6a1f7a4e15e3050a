"""Find database files: a root folder, a db_id, and the layouts that Spider, BIRD and flat folders use."""

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from verl_sql.database.faults import DatabaseNotFound

__all__ = ["Catalog", "DatabaseNotFound", "resolve_database"]

SUFFIXES = (".sqlite", ".db", ".sqlite3")
ROOT_VARIABLE = "VERL_SQL_DB_ROOT"


class Catalog:
    """A root folder of databases.

    Layouts, all at once where a folder mixes them: `<root>/<db>/<db>.sqlite`, `<root>/database/<db>/<db>.sqlite`
    (Spider), `<root>/{dev,train}_databases/<db>/<db>.sqlite` and the same one folder deeper (BIRD), and flat
    `<root>/<db>.sqlite` or `.db`. Of two files for one db_id the first in this order is taken.

    Raises:
        DatabaseNotFound: the root is not a folder.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        """Remember the root; files are looked for when they are asked for."""
        self.root = Path(root).expanduser()
        if not self.root.is_dir():
            raise DatabaseNotFound(f"database root {self.root} is not a folder; set db_root or {ROOT_VARIABLE}")
        self._folders = tuple(self._layout_folders())
        self._paths: dict[str, Path] = {}

    def _layout_folders(self) -> Iterator[Path]:
        """Folders that may hold `<db>/<db>.sqlite`, in order of preference."""
        yield self.root
        yield self.root / "database"
        yield from sorted(self.root.glob("*_databases"))
        yield from sorted(self.root.glob("*/*_databases"))
        yield from sorted(self.root.glob("*/database"))

    def path(self, db_id: str) -> Path:
        """The file of one database.

        Raises:
            DatabaseNotFound: there is none, or the db_id is no plain name.
        """
        found = self._paths.get(db_id)
        if found is None or not os.path.isfile(found):
            found = self._find(db_id)
            self._paths[db_id] = found
        return found

    def _find(self, db_id: str) -> Path:
        """Look the file of one database up on disk."""
        if not db_id or Path(db_id).name != db_id or "\x00" in db_id:
            raise DatabaseNotFound(f"db_id {db_id!r} is not a plain name of a database under {self.root}")
        for folder in self._folders:
            for suffix in SUFFIXES:
                nested = folder / db_id / f"{db_id}{suffix}"
                if nested.is_file():
                    return nested
        for suffix in SUFFIXES:
            if (flat := self.root / f"{db_id}{suffix}").is_file():
                return flat
        raise DatabaseNotFound(
            f"database {db_id!r} not found under {self.root}: looked for <db>/<db>.sqlite, database/<db>/<db>.sqlite, "
            "*_databases/<db>/<db>.sqlite and <db>.sqlite"
        )

    def variants(self, db_id: str) -> tuple[Path, ...]:
        """Every database file in the folder of `db_id`, its canonical file first (Spider's test suite keeps
        variants of a database beside it). A flat layout has the one file only."""
        canonical = self.path(db_id)
        if canonical.parent.name != db_id:
            return (canonical,)
        files = sorted(p for p in canonical.parent.iterdir() if p.suffix in SUFFIXES and p.is_file())
        return (canonical, *(p for p in files if p != canonical))

    def db_ids(self) -> tuple[str, ...]:
        """Every db_id under the root, sorted."""
        nested = {
            child.name
            for folder in self._folders
            if folder.is_dir()
            for child in folder.iterdir()
            if child.is_dir() and any((child / f"{child.name}{suffix}").is_file() for suffix in SUFFIXES)
        }
        flat = {p.stem for p in self.root.iterdir() if p.suffix in SUFFIXES and p.is_file()}
        return tuple(sorted(nested | flat))


@lru_cache(maxsize=64)
def _catalog(root: str) -> Catalog:
    """One catalog a root, so that files are looked up once a process."""
    return Catalog(root)


def resolve_database(db_id: str | None, db_root: str | None, extra_info: Mapping[str, Any] | None = None) -> Path:
    """The database file of one sample.

    The root is `db_root`, else the environment variable VERL_SQL_DB_ROOT; without either, `extra_info["db_path"]`
    names the file itself. A missing `db_id` is taken from `extra_info["db_id"]`.

    Raises:
        DatabaseNotFound: naming what to set, or the file that is not there.
    """
    info = extra_info or {}
    root = db_root or os.environ.get(ROOT_VARIABLE)
    if not root:
        return _named_file(str(info.get("db_path") or ""))
    name = db_id or info.get("db_id")
    if not name:
        raise DatabaseNotFound(f'no db_id: the sample needs extra_info["db_id"] to find its database under {root}')
    return _listed_file(str(root), str(name))


@lru_cache(maxsize=4096)
def _listed_file(root: str, db_id: str) -> Path:
    """The file of a database under a root; whether it is still there is the executor's to notice."""
    return _catalog(root).path(db_id)


@lru_cache(maxsize=4096)
def _named_file(db_path: str) -> Path:
    """The file that a sample names itself; whether it is still there is the executor's to notice."""
    if not db_path:
        raise DatabaseNotFound(
            f"no database root: set reward_kwargs.db_root, the environment variable {ROOT_VARIABLE}, "
            'or extra_info["db_path"]'
        )
    path = Path(db_path).expanduser()
    if not path.is_file():
        raise DatabaseNotFound(f'database file {path} (extra_info["db_path"]) does not exist')
    return path
