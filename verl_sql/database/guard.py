"""A read-only SQLite connection on which any SQL may be tried: what it may do, how long, and how much.

Imported by the worker processes, so nothing heavier than `sqlite3` is imported here.
"""

import os
import sqlite3
import time
from typing import Any, NamedTuple

PROGRESS_STEPS = 2000
"""Virtual machine steps between two looks at the clock (about 40 microseconds of work)."""


def _words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


READING_PRAGMAS = _words(
    "collation_list compile_options database_list foreign_key_list function_list index_info index_list index_xinfo "
    "module_list pragma_list table_info table_list table_xinfo"
)
"""Pragmas that only read the schema, with or without an argument."""

VALUE_PRAGMAS = _words(
    "application_id data_version encoding freelist_count page_count page_size schema_version user_version"
)
"""Pragmas that read a number of the file; with an argument they would set it, so the argument is refused."""

DENIED_FUNCTIONS = _words(
    "load_extension readfile writefile edit fsdir lsmode fts3_tokenizer sqlite_log zipfile "
    "sqlar_compress sqlar_uncompress"
)
DENIED_TABLES = frozenset(("sqlite_stmt", "sqlite_dbpage", "sqlite_memstat"))
"""Virtual tables that show other queries of the connection or raw pages."""

CLOCK_FUNCTIONS = _words("date time datetime julianday strftime unixepoch")
VOLATILE_FUNCTIONS = _words("random randomblob current_date current_time current_timestamp")
FORMAT_FUNCTIONS = _words("printf format")
"""SQLite gives NULL, without an error, where their text would be longer than a cell may be."""

_ACTION_NAMES = _words(
    "ALTER_TABLE ANALYZE ATTACH CREATE_INDEX CREATE_TABLE CREATE_TEMP_INDEX CREATE_TEMP_TABLE CREATE_TEMP_TRIGGER "
    "CREATE_TEMP_VIEW CREATE_TRIGGER CREATE_VIEW CREATE_VTABLE DELETE DETACH DROP_INDEX DROP_TABLE DROP_TEMP_INDEX "
    "DROP_TEMP_TABLE DROP_TEMP_TRIGGER DROP_TEMP_VIEW DROP_TRIGGER DROP_VIEW DROP_VTABLE INSERT REINDEX SAVEPOINT "
    "TRANSACTION UPDATE"
)
_ACTIONS = {getattr(sqlite3, f"SQLITE_{name}"): name.replace("_", " ") for name in _ACTION_NAMES}
_OK, _DENY = sqlite3.SQLITE_OK, sqlite3.SQLITE_DENY
_READ, _FUNCTION, _PRAGMA = sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_PRAGMA
_UPDATE = sqlite3.SQLITE_UPDATE
_PLAIN = (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE)
_HEADER = b"SQLite format 3\x00"


class Identity(NamedTuple):
    """What tells one state of a database file from another: the file's own stat, and that of its WAL."""

    file: tuple[int, int, int, int, int]
    wal: tuple[int, int, int] | None


GONE = "is gone or cannot be reached"
"""What every message about a missing file says."""


class Unusable(Exception):
    """The database file is at fault; the message names it."""


class Missing(Unusable):
    """There is no database file."""


def identify(path: str) -> Identity:
    """The present identity of a database file.

    Raises:
        Missing: there is no such file.
    """
    try:
        s = os.stat(path)
    except OSError as error:
        raise Missing(f"database {path} {GONE}: {error.strerror or error}") from None
    try:
        w = os.stat(path + "-wal")
        wal = (w.st_ino, w.st_size, w.st_mtime_ns) if w.st_size else None
    except OSError:
        wal = None
    return Identity((s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns), wal)


class Guard:
    """The authorizer and the deadline of one connection."""

    __slots__ = ("clock_used", "deadline", "denied", "formatted", "overran", "volatile")

    def __init__(self) -> None:
        """Nothing denied, no deadline yet."""
        self.begin(float("inf"))

    def begin(self, deadline: float) -> None:
        """Forget the last query; the next one must end before `deadline` (time.monotonic seconds)."""
        self.deadline = deadline
        self.denied = ""
        self.overran = False
        self.volatile = False
        self.clock_used = False
        self.formatted = False

    def authorize(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        """SQLite's question while it compiles: may this be done? Reading may; nothing else may."""
        if action == _READ:
            return _OK if first not in DENIED_TABLES else self._deny(f"reading {first}")
        if action in _PLAIN:
            return _OK
        if action == _FUNCTION:
            return self._authorize_function((second or "").lower())
        if action == _PRAGMA:
            return self._authorize_pragma((first or "").lower(), second)
        if action == _UPDATE and first == "sqlite_master":
            return _OK  # asked when json_each and its like are first used; SQLite itself refuses the statement
        return self._deny(_ACTIONS.get(action, f"action {action}"))

    def _authorize_function(self, name: str) -> int:
        if name in DENIED_FUNCTIONS:
            return self._deny(f"function {name}")
        if name in VOLATILE_FUNCTIONS:
            self.volatile = True
        elif name in CLOCK_FUNCTIONS:
            self.clock_used = True
        elif name in FORMAT_FUNCTIONS:
            self.formatted = True
        return _OK

    def _authorize_pragma(self, name: str, argument: str | None) -> int:
        if name in READING_PRAGMAS or (name in VALUE_PRAGMAS and argument is None):
            return _OK
        return self._deny(f"PRAGMA {name}")

    def _deny(self, what: str) -> int:
        self.denied = self.denied or what
        return _DENY

    def progress(self) -> int:
        """SQLite's question while it runs: stop? Yes once the deadline has passed."""
        if time.monotonic() < self.deadline:
            return 0
        self.overran = True
        return 1


def open_guarded(path: str, identity: Identity, guard: Guard, limits: dict[str, Any]) -> sqlite3.Connection:
    """Open a database for reading only and put every guard on it.

    Raises:
        Unusable: the file is no SQLite database or cannot be opened.
    """
    uri = read_only_uri(path, identity)
    try:
        connection = sqlite3.connect(uri, uri=True, timeout=2.0, isolation_level=None, cached_statements=0)
    except sqlite3.Error as error:
        raise Unusable(f"database {path} cannot be opened: {error}") from None
    try:
        _restrict(connection, guard, limits)
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except sqlite3.Error as error:
        connection.close()
        raise Unusable(f"database {path} cannot be read: {error}") from None
    return connection


def read_only_uri(path: str, identity: Identity) -> str:
    """The URI to open: read-only; immutable only for a database in WAL mode that has no WAL, where plain read-only
    access would leave a -shm and a -wal file behind."""
    try:
        with open(path, "rb") as file:
            header = file.read(20)
    except OSError as error:
        raise Missing(f"database {path} {GONE}: {error.strerror or error}") from None
    if not header.startswith(_HEADER):
        what = "is empty (0 bytes)" if not header else "is not a SQLite database"
        raise Unusable(f"database {path} {what}")
    quoted = "".join(c if c not in "%?#" else f"%{ord(c):02X}" for c in os.path.abspath(path))
    clean_wal_mode = header[18:20] == b"\x02\x02" and identity.wal is None
    return f"file:{quoted}?mode=ro" + ("&immutable=1" if clean_wal_mode else "")


def _restrict(connection: sqlite3.Connection, guard: Guard, limits: dict[str, Any]) -> None:
    """Set the limits, then the pragmas, then the authorizer that forbids both to everyone else."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, limits["max_cell_bytes"])
    connection.setlimit(sqlite3.SQLITE_LIMIT_SQL_LENGTH, limits["max_sql_bytes"])
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0)
    connection.execute("PRAGMA query_only=ON")
    connection.execute("PRAGMA temp_store=MEMORY")
    connection.execute("PRAGMA cache_size=-8000")
    if limits["backwards"]:
        from verl_sql.database.backwards import read_backwards

        read_backwards(connection)
    connection.set_authorizer(guard.authorize)
    connection.set_progress_handler(guard.progress, PROGRESS_STEPS)
