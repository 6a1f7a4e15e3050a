"""Runs queries inside a worker process: open databases, remembered results, statuses, caps while fetching."""

import re
import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from verl_sql.database.guard import Guard, Identity, Missing, Unusable, identify, open_guarded
from verl_sql.database.results import ERROR, FORBIDDEN, OK, TIMEOUT, TOO_LARGE, Memory, Result, rows_bytes

FIRST_CHUNK, CHUNK = 8, 2048
"""Rows fetched before memory is first looked at, and between looks."""
NO_STATEMENT = "no SQL statement: the text is empty or holds only comments"
_DATA_CODES = frozenset(
    (
        sqlite3.SQLITE_BUSY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_READONLY,
    )
)  # fmt: skip
_LARGE_CODES = frozenset((sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_NOMEM))


_CLOCK = re.compile(r"now|\(\s*\)|strftime\s*\(\s*'[^']*'\s*\)", re.IGNORECASE)

_WIDE_FORMAT = re.compile(r"%[^%]*?(\d{7,}|\*)")


class TooLarge(Exception):
    """The result is beyond the caps."""


class OpenDatabase:
    """One database that is held open, with the state of the file it was opened in."""

    __slots__ = ("checked_in", "connection", "guard", "identity", "token")

    def __init__(self, token: int, identity: Identity, connection: sqlite3.Connection, guard: Guard) -> None:
        """As opened."""
        self.token, self.identity, self.connection, self.guard = token, identity, connection, guard
        self.checked_in = -1


class Runner:
    """Executes SQL on read-only databases, remembering results.

    Args:
        limits: the fields of `limits.Limits`.
        watch: called with the deadline (time.monotonic seconds) before a query starts.
    """

    def __init__(self, limits: dict[str, Any], watch: Callable[[float], None]) -> None:
        """Nothing open yet."""
        self.limits = limits
        self.tired = False
        self.notices: list[str] = []
        self._watch = watch
        self._open: OrderedDict[str, OpenDatabase] = OrderedDict()
        self._known: dict[str, tuple[Identity, int]] = {}
        self._memory = Memory(limits["remembered_mb"] << 20)
        self._passing: dict[tuple[int, str], Result] = {}
        self._message = 0
        self._tokens = 0

    def begin_message(self) -> None:
        """A new batch of requests: files are checked again, and results that depend on the clock are forgotten."""
        self._message += 1
        self._passing.clear()
        self.notices = []

    def run(self, path: str, sql: str, timeout: float) -> Result:
        """The result of one query, from memory if it is there and the file has not changed.

        A fault of the database file is a Result too, with `data_fault` set; nothing raises.
        """
        try:
            database = self._take(path)
        except Unusable as error:
            return Result(ERROR, str(error), data_fault=True)
        key = (database.token, sql)
        result = self._memory.get(key, timeout) or self._passing.get(key)
        if result is None:
            result = self._execute(database, path, sql, timeout)
            self._remember(key, result)
        return result

    def _remember(self, key: tuple[int, str], result: Result) -> None:
        """Keep a result: for good, for this message only, or not at all when the file was at fault."""
        if result.data_fault:
            return
        if result.volatile:
            self._passing[key] = result
        else:
            self._memory.put(key, result)

    def _take(self, path: str) -> OpenDatabase:
        """The open database, opened anew if its file is not the one that was opened.

        The file is looked at once a message.
        """
        database = self._open.get(path)
        if database is not None and database.checked_in == self._message:
            return database
        try:
            identity = identify(path)
        except Missing:
            self._close(path)
            raise
        if database is None or database.identity != identity:
            database = self._reopen(path, identity)
        database.checked_in = self._message
        self._open.move_to_end(path)
        return database

    def _reopen(self, path: str, identity: Identity) -> OpenDatabase:
        """Open a file that is not open in this state; say so when it was in another state before."""
        self._close(path)
        token = self._token(path, identity)
        while len(self._open) >= self.limits["connections"]:
            self._close(next(iter(self._open)))
        guard = Guard()
        connection = open_guarded(path, identity, guard, self.limits)
        database = self._open[path] = OpenDatabase(token, identity, connection, guard)
        return database

    def _token(self, path: str, identity: Identity) -> int:
        """The number under which results of this state of the file are remembered; another state drops them."""
        before, token = self._known.get(path, (None, 0))
        if before == identity:
            return token
        if before is not None:
            self._memory.drop_database(token)
            self._say_changed(path, before, identity)
        token = self._tokens = self._tokens + 1
        self._known[path] = identity, token
        return token

    def _say_changed(self, path: str, before: Identity, now: Identity) -> None:
        """One sentence about a file that changed; a live WAL changes all the time and is not worth one."""
        if before.file != now.file and before.wal is None and now.wal is None:
            self.notices.append(
                f"database {path} changed on disk during the run (size {before.file[2]} -> {now.file[2]} bytes): "
                "what was remembered of it is dropped and it is read anew"
            )

    def _close(self, path: str) -> None:
        """Close one database, if it is open."""
        database = self._open.pop(path, None)
        if database is not None:
            database.connection.close()

    def _execute(self, database: OpenDatabase, path: str, sql: str, timeout: float) -> Result:
        """Run one query for real."""
        start = time.monotonic()
        deadline = start + timeout
        guard = database.guard
        guard.begin(deadline)
        self._watch(deadline)
        try:
            result = self._fetch(database.connection, sql)
            if guard.formatted and _WIDE_FORMAT.search(sql) and _has_null(result):
                raise TooLarge("a formatted text is longer than a cell may be")
        except Exception as error:
            result = self._failure(error, guard, path, timeout)
        result.seconds = time.monotonic() - start
        result.timeout = timeout
        result.volatile = guard.volatile or (guard.clock_used and _reads_clock(sql))
        if result.data_fault:
            self._close(path)
        return result

    def _fetch(self, connection: sqlite3.Connection, sql: str) -> Result:
        """Run and read everything, within the caps; text that is no UTF-8 is read with surrogate escapes."""
        try:
            return self._read(connection.execute(sql))
        except sqlite3.OperationalError as error:
            if "decode to UTF-8" not in str(error):
                raise
        connection.text_factory = _escaped
        try:
            return self._read(connection.execute(sql))
        finally:
            connection.text_factory = str

    def _read(self, cursor: sqlite3.Cursor) -> Result:
        """All rows of a cursor.

        Raises:
            TooLarge: more rows or more bytes than allowed.
        """
        result = Result(OK)
        try:
            if cursor.description is None:
                return Result(ERROR, NO_STATEMENT)
            result.columns = tuple([column[0] for column in cursor.description])
            rows = result.rows = cursor.fetchmany(FIRST_CHUNK)
            result.held_bytes += rows_bytes(rows)
            if len(rows) == FIRST_CHUNK:
                self._read_rest(cursor, result)
        finally:
            cursor.close()
        return result

    def _read_rest(self, cursor: sqlite3.Cursor, result: Result) -> None:
        """The rows after the first chunk."""
        max_rows, max_bytes = self.limits["max_rows"], self.limits["max_bytes"]
        size = FIRST_CHUNK
        while True:
            if result.held_bytes > max_bytes:
                raise TooLarge(f"the result takes more than {max_bytes} bytes (after {len(result.rows)} rows)")
            chunk = cursor.fetchmany(size)
            if not chunk:
                return
            size = min(4 * size, CHUNK)
            result.rows += chunk
            result.held_bytes += rows_bytes(chunk)
            if len(result.rows) > max_rows:
                raise TooLarge(f"the result has more than {max_rows} rows")

    def _failure(self, error: Exception, guard: Guard, path: str, timeout: float) -> Result:
        """The result that an exception stands for."""
        code = getattr(error, "sqlite_errorcode", None) or 0
        if guard.denied:
            return Result(FORBIDDEN, f"not allowed: {guard.denied}")
        if guard.overran:
            return Result(TIMEOUT, f"ran past its deadline of {timeout:g} s")
        if isinstance(error, TooLarge | sqlite3.DataError) or code & 0xFF in _LARGE_CODES or code in _LARGE_CODES:
            return Result(TOO_LARGE, str(error))
        if isinstance(error, MemoryError):
            self.rest()
            return Result(TOO_LARGE, f"needs more memory than a worker has ({self.limits['worker_memory_mb']} MiB)")
        if code & 0xFF in _DATA_CODES and code != sqlite3.SQLITE_CORRUPT_VTAB:
            return Result(ERROR, f"database {path} cannot be read: {error}", data_fault=True)
        return Result(ERROR, str(error))

    def rest(self) -> None:
        """Memory ran out: let everything go, and ask to be replaced after this message."""
        self.tired = True
        self._memory.clear()
        self._passing.clear()


def _escaped(raw: bytes) -> str:
    """Decode text so that different bytes stay different."""
    return raw.decode("utf-8", "surrogateescape")


def _has_null(result: Result) -> bool:
    """Whether any cell is NULL."""
    return any(cell is None for row in result.rows for cell in row)


def _reads_clock(sql: str) -> bool:
    """Whether a query that calls a date function may be asking for the present time: by 'now' or by no time at all."""
    return _CLOCK.search(sql) is not None
