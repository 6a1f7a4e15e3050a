"""Gold results on disk: what data preparation learned about each gold query, for the reward and for reports.

A file of JSON lines, appended to, one line a (database content, SQL):

    {"database": "concert_singer", "content": "9f3c…", "sql": "SELECT count(*) FROM singer", "status": "ok",
     "digest": "c1d0…", "n_rows": 1, "all_null": false, "seconds": 0.0004, "message": ""}

`content` is a digest of the database file and its WAL, so an entry cannot answer for other data: a database that
changed makes its entries stale, which is counted and said once a database.
"""

import hashlib
import json
import logging
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from verl_sql.database.execution import Execution, Status
from verl_sql.database.executor import Executor
from verl_sql.database.faults import DatabaseNotFound
from verl_sql.database.guard import Identity, Missing, identify

logger = logging.getLogger("verl_sql.database")

Request = tuple[str | os.PathLike[str], str]


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
    """

    status: Status
    digest: str = ""
    n_rows: int = 0
    all_null: bool = False
    seconds: float = 0.0
    message: str = ""

    @classmethod
    def of(cls, execution: Execution) -> "GoldResult":
        """What to keep of an execution."""
        e = execution
        return cls(e.status, e.digest, e.n_rows, e.all_null, e.seconds, e.message)

    @property
    def is_empty(self) -> bool:
        """Whether it ran and returned no row: any other empty result would equal it."""
        return self.status is Status.OK and self.n_rows == 0


class GoldCache:
    """Gold results by (database content, SQL), kept in one file.

    Args:
        path: the file; it need not exist yet.

    Attributes:
        stale: look-ups that found an entry for the same database name and SQL, but for other content.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Read what the file holds; a line that is cut off or no entry is skipped and said."""
        self.path = Path(path)
        self.stale = 0
        self._results: dict[tuple[str, str], GoldResult] = {}
        self._names: dict[tuple[str, str], str] = {}
        self._contents: dict[str, tuple[Identity, str]] = {}
        self._said: set[str] = set()
        if self.path.exists():
            self._load()

    def __len__(self) -> int:
        """Number of entries."""
        return len(self._results)

    def get(self, database: str | os.PathLike[str], sql: str) -> GoldResult | None:
        """The result of a gold query on the database as it is now, or None.

        Raises:
            DatabaseNotFound: there is no such file.
        """
        content = self._content(database)
        found = self._results.get((content, sql))
        if found is None and self._names.get((Path(database).stem, sql), content) != content:
            self._say_stale(database)
        return found

    def put(self, database: str | os.PathLike[str], sql: str, execution: Execution) -> GoldResult:
        """Remember an execution (run with `digest=True`) and append it to the file.

        Raises:
            DatabaseNotFound: there is no such file.
            ValueError: the execution succeeded but has no digest, or tells of the file and not of the query.
        """
        if execution.data_fault or (execution.ok and not execution.digest):
            raise ValueError(f"not a gold result to keep: {execution.message or 'it was run without digest=True'}")
        result = GoldResult.of(execution)
        content, name = self._content(database), Path(database).stem
        self._add(name, content, sql, result)
        line = json.dumps({"database": name, "content": content, "sql": sql, **asdict(result)}) + "\n"
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
                self.put(database, sql, execution)
        return [self._known(database, sql) for database, sql in wanted]

    def _known(self, database: str | os.PathLike[str], sql: str) -> GoldResult | None:
        """`get`, with None for a database that is not there."""
        try:
            return self.get(database, sql)
        except DatabaseNotFound:
            return None

    def _content(self, database: str | os.PathLike[str]) -> str:
        """The digest of a database's content, computed again only when its file changed."""
        path = os.fspath(database)
        try:
            identity = identify(path)
        except Missing as error:
            raise DatabaseNotFound(str(error)) from None
        known = self._contents.get(path)
        if known is None or known[0] != identity:
            known = self._contents[path] = identity, content_digest(path)
        return known[1]

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

    def _say_stale(self, database: str | os.PathLike[str]) -> None:
        """Count a stale entry; one sentence a database."""
        self.stale += 1
        if (path := os.fspath(database)) not in self._said:
            self._said.add(path)
            logger.warning("%s: entries for %s are stale, the database has other content now", self.path, path)


def content_digest(database: str | os.PathLike[str]) -> str:
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
    result = GoldResult(Status(fields["status"]), **{name: fields[name] for name in names})
    return fields["database"], fields["content"], fields["sql"], result
