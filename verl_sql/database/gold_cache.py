"""Gold results on disk: what data preparation learned about each gold query, for the reward and for reports.

A file of JSON lines, appended to, one line a (database content, SQL):

    {"database": "concert_singer", "content": "9f3c…", "sql": "SELECT count(*) FROM singer", "status": "ok",
     "digest": "c1d0…", "n_rows": 1, "all_null": false, "seconds": 0.0004, "message": "", "allowed": 30.0}

`content` is a digest of the database file and its WAL, so an entry cannot answer for other data: a database that
changed makes its entries stale, which is counted and said once a database.
"""

import hashlib
import json
import logging
import os
import threading
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from verl_sql.database.execution import Execution, Status
from verl_sql.database.executor import Executor
from verl_sql.database.faults import DatabaseNotFound
from verl_sql.database.guard import Identity, Missing, identify

logger = logging.getLogger("verl_sql.database")

PathLike = str | os.PathLike[str]
Request = tuple[PathLike, str]
VARIABLE = "VERL_SQL_GOLD_CACHE"
"""The environment variable that names the file for every reward of a run."""


@dataclass(frozen=True, slots=True)
class GoldResult:
    """What a gold query gave when it was run.

    Attributes:
        status: how it ended; a gold that is not OK is the data's fault.
        digest: `digest.result_digest` of its rows, "" when it failed. Equal digests are equal results by `bird_set`.
        n_rows: rows of the result.
        all_null: it has rows, and every cell is NULL.
        seconds: wall clock it took.
        message: why it failed.
        allowed: seconds it was allowed, 0 when that is not known.
    """

    status: Status
    digest: str = ""
    n_rows: int = 0
    all_null: bool = False
    seconds: float = 0.0
    message: str = ""
    allowed: float = 0.0

    @classmethod
    def of(cls, execution: Execution, allowed: float = 0.0) -> "GoldResult":
        """What to keep of an execution that was allowed so many seconds."""
        e = execution
        return cls(e.status, e.digest, e.n_rows, e.all_null, e.seconds, e.message, allowed)

    @property
    def is_empty(self) -> bool:
        """Whether it ran and returned no row: any other empty result would equal it."""
        return self.status is Status.OK and self.n_rows == 0

    def failure(self, timeout: float) -> Execution | None:
        """How it is bound to fail within `timeout` seconds, or None if it is to be run.

        A gold that timed out fails again if it gets no more time than it had; one that ran fails when it took longer
        than it gets now; every other failure repeats itself.
        """
        if self.status is Status.OK and self.seconds > timeout:
            message = f"took {self.seconds:.1f} s when it was recorded, of {timeout:g} s allowed now"
            return Execution(Status.TIMEOUT, seconds=self.seconds, message=message)
        if self.status is Status.OK or (self.status is Status.TIMEOUT and max(self.allowed, self.seconds) < timeout):
            return None
        return Execution(self.status, seconds=self.seconds, message=self.message)


class Contents:
    """Digests of database files, each computed again only when its file changed; for many threads."""

    def __init__(self) -> None:
        """None known."""
        self._known: dict[str, tuple[Identity, str]] = {}
        self._lock = threading.Lock()

    def of(self, database: PathLike) -> str:
        """The digest of a database's content as it is now.

        Raises:
            DatabaseNotFound: there is no such file.
        """
        path = os.fspath(database)
        try:
            identity = identify(path)
        except Missing as error:
            raise DatabaseNotFound(str(error)) from None
        with self._lock:
            known = self._known.get(path)
            if known is None or known[0] != identity:
                known = self._known[path] = identity, content_digest(path)
            return known[1]


class GoldCache:
    """Gold results by (database content, SQL), kept in one file.

    Args:
        path: the file; it need not exist yet.

    Attributes:
        stale: look-ups that found an entry for the same database name and SQL, but for other content.
    """

    def __init__(self, path: PathLike) -> None:
        """Read what the file holds; a line that is cut off or no entry is skipped and said."""
        self.path = Path(path)
        self.stale = 0
        self._results: dict[tuple[str, str], GoldResult] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._contents = Contents()
        self._said: set[str] = set()
        if self.path.exists():
            self._load()

    def __len__(self) -> int:
        """Number of entries."""
        return len(self._results)

    def get(self, database: PathLike, sql: str) -> GoldResult | None:
        """The result of a gold query on the database as it is now, or None.

        Raises:
            DatabaseNotFound: there is no such file.
        """
        content = self._contents.of(database)
        found = self._results.get((content, sql))
        if found is None and self._names.get((Path(database).stem, sql), content) != content:
            self._say_stale(database)
        return found

    def failure(self, database: PathLike, sql: str, timeout: float) -> Execution | None:
        """How a gold query on the database as it is now is bound to fail within `timeout` seconds; None: run it.

        Raises:
            DatabaseNotFound: there is no such file.
        """
        found = self.get(database, sql)
        return found.failure(timeout) if found is not None else None

    def put(self, database: PathLike, sql: str, execution: Execution, allowed: float = 0.0) -> GoldResult:
        """Remember an execution (run with `digest=True`, allowed so many seconds) and append it to the file.

        Raises:
            DatabaseNotFound: there is no such file.
            ValueError: the execution succeeded but has no digest, or tells of the file and not of the query.
        """
        if execution.data_fault or (execution.ok and not execution.digest):
            raise ValueError(f"not a gold result to keep: {execution.message or 'it was run without digest=True'}")
        result = GoldResult.of(execution, allowed)
        content, name = self._contents.of(database), Path(database).stem
        self._add(name, content, sql, result)
        line = gold_line(name, content, sql, result)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "ab") as file:
            file.write(line.encode("utf-8"))
        return result

    def fill(
        self, executor: Executor, requests: Iterable[Request], timeout: float | None = None
    ) -> list[GoldResult | None]:
        """The results of many golds in order, running those that are missing; None where the database is at fault."""
        wanted = list(requests)
        missing = list(dict.fromkeys((os.fspath(db), sql) for db, sql in wanted if self._known(db, sql) is None))
        for (database, sql), execution in zip(
            missing, executor.execute_many(missing, timeout=timeout, digest=True), strict=True
        ):
            if not execution.data_fault:
                self.put(database, sql, execution, executor.timeout if timeout is None else timeout)
        return [self._known(database, sql) for database, sql in wanted]

    def _known(self, database: PathLike, sql: str) -> GoldResult | None:
        """`get`, with None for a database that is not there."""
        try:
            return self.get(database, sql)
        except DatabaseNotFound:
            return None

    def _add(self, name: str, content: str, sql: str, result: GoldResult) -> None:
        """Remember one entry."""
        self._results[content, sql] = result
        self._names[name, sql] = content

    def _load(self) -> None:
        """Read the file."""
        with open(self.path, encoding="utf-8") as file:
            for number, line in enumerate(file, start=1):
                try:
                    self._add(*_entry(json.loads(line)))
                except (ValueError, KeyError, TypeError):
                    logger.warning("%s: line %d is no gold result and is skipped", self.path, number)

    def _say_stale(self, database: PathLike) -> None:
        """Count a stale entry; one sentence a database."""
        self.stale += 1
        if (path := os.fspath(database)) not in self._said:
            self._said.add(path)
            logger.warning("%s: entries for %s are stale, the database has other content now", self.path, path)


@cache
def open_gold_cache(path: str) -> GoldCache:
    """The cache in a file, read once a process.

    Raises:
        FileNotFoundError: there is no such file.
    """
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"there is no file of gold results {path}: data_prep writes golds.jsonl; set gold_cache or {VARIABLE} to it"
        )
    return GoldCache(path)


def chosen_gold_cache(path: PathLike | None = None) -> GoldCache | None:
    """The cache in the file given, else in the one that VERL_SQL_GOLD_CACHE names, else None.

    Raises:
        FileNotFoundError: there is no such file.
    """
    named = os.fspath(path) if path else os.environ.get(VARIABLE)
    return open_gold_cache(named) if named else None


def gold_line(name: str, content: str, sql: str, result: GoldResult) -> str:
    """One line of the file, its end included."""
    return json.dumps({"database": name, "content": content, "sql": sql, **asdict(result)}) + "\n"


def content_digest(database: PathLike) -> str:
    """Hex digest of a database file's bytes and those of its write-ahead log, if it has one."""
    digest = hashlib.blake2b(digest_size=16)
    for path in (os.fspath(database), os.fspath(database) + "-wal"):
        if os.path.exists(path):
            with open(path, "rb") as file:
                while chunk := file.read(1 << 20):
                    digest.update(chunk)
    return digest.hexdigest()


def _entry(fields: dict[str, Any]) -> tuple[str, str, str, GoldResult]:
    """Name, content, SQL and result of one line."""
    names = ("digest", "n_rows", "all_null", "seconds", "message")
    known = {name: fields[name] for name in names}
    result = GoldResult(Status(fields["status"]), **known, allowed=fields.get("allowed", 0.0))
    return fields["database"], fields["content"], fields["sql"], result
