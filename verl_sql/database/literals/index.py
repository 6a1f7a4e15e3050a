"""Where the index of a database is, and that it is made once, whoever asks first and however many ask at once.

An index belongs to one state of a database file: its name holds a digest of the file's size, time, header and WAL. It
lies in `.literals/` beside the database, or under the user's cache folder where that cannot be written to; the
environment variable VERL_SQL_LITERALS names another folder. The database file itself is only ever read.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from verl_sql.database.faults import DatabaseNotFound, DatabaseUnusable
from verl_sql.database.guard import Identity, Missing, Unusable, identify
from verl_sql.database.literals.build import build_index

FOLDER = ".literals"
VARIABLE = "VERL_SQL_LITERALS"
SUFFIX = ".fts"
"""Not a database's suffix: what looks for variants of a database beside it must not find an index."""
_FORMAT = "1"
_HEADER_BYTES = 100

PathLike = str | os.PathLike[str]


def ensure_index(database: PathLike, folder: PathLike | None = None) -> Path:
    """The index of a database in its present state, built if it is not there.

    Safe to call from many threads and processes: one builds, the others wait for it; the file appears when it is whole.

    Args:
        database: SQLite file.
        folder: where indexes are kept; None takes VERL_SQL_LITERALS, else the places the module names.

    Raises:
        DatabaseNotFound, DatabaseUnusable: there is no such file, or it is no database.
        sqlite3.Error, OSError: it cannot be read, or no folder can be written to.
    """
    identity = _identity(database)
    target = _path(database, identity, folder)
    if target.is_file():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with _only_one(target.with_suffix(".lock")):
        if not target.is_file():
            try:
                _build(Path(database).resolve(), identity, target)
            except Unusable as error:
                raise DatabaseUnusable(str(error)) from None
    return target


def index_path(database: PathLike, folder: PathLike | None = None) -> Path:
    """Where the index of a database in its present state is, or will be.

    Raises:
        DatabaseNotFound: there is no such file.
    """
    return _path(database, _identity(database), folder)


def _identity(database: PathLike) -> Identity:
    """The state of the file.

    Raises:
        DatabaseNotFound: there is none.
    """
    try:
        return identify(os.fspath(database))
    except Missing as error:
        raise DatabaseNotFound(str(error)) from None


def _path(database: PathLike, identity: Identity, folder: PathLike | None) -> Path:
    """The file's name in its folder."""
    path = Path(database).resolve()
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    size, time = identity.file[2], identity.file[3]
    state = repr((_FORMAT, size, time, identity.wal and identity.wal[1:], header)).encode()
    name = f"{path.stem}-{hashlib.blake2b(state, digest_size=8).hexdigest()}{SUFFIX}"
    chosen = folder or os.environ.get(VARIABLE)
    if chosen:
        return Path(chosen).expanduser() / name
    beside = path.parent / FOLDER
    if (beside / name).is_file() or os.access(beside if beside.is_dir() else path.parent, os.W_OK):
        return beside / name
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "verl_sql" / "literals" / name


def _build(database: Path, identity: Identity, target: Path) -> None:
    """Build beside the target and put it in place whole; older states of the same database go."""
    partial = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        build_index(database, identity, partial)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
    if target.parent == database.parent / FOLDER:
        digest = len(target.name) - len(database.stem)
        for old in target.parent.glob(f"*{SUFFIX}"):
            if old != target and old.name[:-digest] == database.stem:
                old.unlink(missing_ok=True)
                old.with_suffix(".lock").unlink(missing_ok=True)


@contextmanager
def _only_one(lock: Path) -> Iterator[None]:
    """Hold a lock file, waiting for whoever has it; the system frees it when its holder dies."""
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
