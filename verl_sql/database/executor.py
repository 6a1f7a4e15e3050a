"""Run and compare SQL, from any thread or event loop, on a pool of guarded worker processes.

    with Executor(workers=2, timeout=30) as executor:
        executor.execute("shop.sqlite", "SELECT count(*) FROM orders").n_rows
        executor.compare("shop.sqlite", gold, pred, comparators=("bird_set", "qatch")).values

Three kinds of fault stay apart. What the SQL does wrong is a `Status`. What is wrong with a database file raises
`DatabaseNotFound` or `DatabaseUnusable` from the single calls and sets `Execution.data_fault` in the bulk calls, which
go on with the rest. What is wrong with the pool raises `ExecutorError`.
"""

import atexit
import os
import threading
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from verl_sql.database.comparators import check_comparators
from verl_sql.database.entries import Answer, Entry, FutureSink, OneSink, StreamSink
from verl_sql.database.execution import Comparison, Execution, Status
from verl_sql.database.faults import DatabaseNotFound, DatabaseUnusable, ExecutorError
from verl_sql.database.guard import GONE
from verl_sql.database.limits import Limits
from verl_sql.database.pool import Pool
from verl_sql.database.tasks import COMPARE, RUN

BLOCK, WINDOW = 512, 4096
"""compare_many sends so many pairs at a time, and never has more than so many on their way."""

_STATUS = {status.value: status for status in Status}
PathLike = str | os.PathLike[str]


@dataclass(frozen=True, slots=True)
class Pair:
    """A gold and a predicted query on one database, and the variants of that database for `test_suite`."""

    database: Path
    gold: str
    pred: str
    variants: tuple[Path, ...] = ()


class Executor:
    """The door to a pool of worker processes; every method may be called from many threads at once.

    Args:
        workers: number of worker processes; None takes `default_workers()`.
        timeout: seconds one query may run, gold and predicted each, where a call does not say otherwise.
        limits: memory, rows, bytes and grace; None takes the defaults of `Limits`.

    The processes start when there is work, and again after a fork or a close by accident; `close` ends them for good.
    """

    def __init__(self, workers: int | None = None, timeout: float = 30.0, limits: Limits | None = None) -> None:
        """Nothing is started yet."""
        self.timeout = _checked_timeout(timeout)
        self._home = _Home(workers or default_workers(), limits or Limits())

    @property
    def workers(self) -> int:
        """Number of worker processes."""
        return self._home.workers

    @property
    def limits(self) -> Limits:
        """What queries may use."""
        return self._home.limits

    def worker_pids(self) -> list[int]:
        """Process ids of the workers that run now."""
        return self._home.pids()

    # --- one query ---

    def execute(
        self, database: PathLike, sql: str, *, timeout: float | None = None, keep_rows: int = 0, digest: bool = False
    ) -> Execution:
        """Run one query.

        Args:
            database: SQLite file.
            sql: one SELECT (or VALUES, or a pragma that only reads the schema).
            timeout: seconds it may run; None takes the executor's.
            keep_rows: rows to hand back at most.
            digest: also digest the distinct rows.

        Raises:
            DatabaseNotFound, DatabaseUnusable: the file is at fault.
            ExecutorError: the pool is.
        """
        task = self._run_task(database, sql, timeout, keep_rows, digest)
        return _checked(_execution(self._ask(task)))

    async def aexecute(
        self, database: PathLike, sql: str, *, timeout: float | None = None, keep_rows: int = 0, digest: bool = False
    ) -> Execution:
        """`execute` for an event loop; waits without a thread."""
        task = self._run_task(database, sql, timeout, keep_rows, digest)
        return _checked(_execution(await self._ask_async(task)))

    def execute_many(
        self,
        requests: Iterable[tuple[PathLike, str]],
        *,
        timeout: float | None = None,
        keep_rows: int = 0,
        digest: bool = False,
    ) -> list[Execution]:
        """Run many queries, in their order; a database at fault gives executions with `data_fault` set."""
        tasks = (self._run_task(database, sql, timeout, keep_rows, digest) for database, sql in requests)
        return [_execution(answer) for answer in self._stream(tasks)]

    # --- a gold and a predicted query ---

    def compare(
        self,
        database: PathLike,
        gold: str,
        pred: str,
        *,
        comparators: Iterable[str] = ("bird_set",),
        timeout: float | None = None,
        variants: Iterable[PathLike] = (),
    ) -> Comparison:
        """Run a gold and a predicted query and compare their results.

        Args:
            database: SQLite file.
            gold: gold SQL; its result is remembered.
            pred: predicted SQL.
            comparators: names of `verl_sql.database.comparators`.
            timeout: seconds each of the two may run; None takes the executor's.
            variants: further databases that `test_suite` asks.

        Raises:
            DatabaseNotFound, DatabaseUnusable: a file is at fault.
            ExecutorError: the pool is.
        """
        task = self._compare_task(database, gold, pred, tuple(comparators), timeout, variants)
        return _checked_comparison(_comparison(self._ask(task)))

    async def acompare(
        self,
        database: PathLike,
        gold: str,
        pred: str,
        *,
        comparators: Iterable[str] = ("bird_set",),
        timeout: float | None = None,
        variants: Iterable[PathLike] = (),
    ) -> Comparison:
        """`compare` for an event loop; waits without a thread."""
        task = self._compare_task(database, gold, pred, tuple(comparators), timeout, variants)
        return _checked_comparison(_comparison(await self._ask_async(task)))

    def compare_many(
        self, pairs: Iterable[Pair], *, comparators: Iterable[str] = ("bird_set",), timeout: float | None = None
    ) -> Iterator[Comparison]:
        """Compare many pairs; comparisons stream out in the pairs' order while later pairs still run.

        Pairs of one gold meet on one worker, so their order in the input does not matter for speed. A database at fault
        gives comparisons whose `gold.data_fault` is set; the rest goes on.
        """
        names = tuple(comparators)
        tasks = (self._compare_task(p.database, p.gold, p.pred, names, timeout, p.variants) for p in pairs)
        return map(_comparison, self._stream(tasks))

    # --- life ---

    def close(self) -> None:
        """End the workers; later calls raise ExecutorError."""
        self._home.close()

    def __enter__(self) -> "Executor":
        """Itself."""
        return self

    def __exit__(self, *exc: object) -> None:
        """Close."""
        self.close()

    # --- from calls to tasks, and back ---

    def _run_task(
        self, database: PathLike, sql: str, timeout: float | None, keep_rows: int, digest: bool
    ) -> tuple[Any, ...]:
        """See `tasks.RUN`."""
        seconds = self.timeout if timeout is None else _checked_timeout(timeout)
        return RUN, os.fspath(database), self._text(sql), seconds, keep_rows, digest, ()

    def _compare_task(
        self,
        database: PathLike,
        gold: str,
        pred: str,
        names: tuple[str, ...],
        timeout: float | None,
        variants: Iterable[PathLike],
    ) -> tuple[Any, ...]:
        """See `tasks.COMPARE`."""
        seconds = self.timeout if timeout is None else _checked_timeout(timeout)
        others = tuple([os.fspath(variant) for variant in variants]) if variants else ()
        return (
            COMPARE, os.fspath(database), self._text(gold), self._text(pred), others, _names(names), seconds, (),
        )  # fmt: skip

    def _text(self, sql: str) -> str:
        """The SQL as a plain string, cut right after the limit where it is longer (SQLite refuses it all the same)."""
        text = sql if type(sql) is str else str(sql)
        longest = self._home.limits.max_sql_bytes
        return text if len(text) <= longest else text[: longest + 1]

    def _ask(self, task: tuple[Any, ...]) -> Answer:
        """Send one task and wait for its answer."""
        sink = OneSink()
        self._home.pool().submit((Entry(task, _key(task), sink),))
        return sink.wait()

    async def _ask_async(self, task: tuple[Any, ...]) -> Answer:
        """Send one task and await its answer."""
        sink = FutureSink()
        self._home.pool().submit((Entry(task, _key(task), sink),))
        return await sink.future

    def _stream(self, tasks: Iterable[tuple[Any, ...]]) -> Iterator[Answer]:
        """Send tasks in blocks, those of one key together; answers in the order of the tasks."""
        sink, arrived, source = StreamSink(), {}, iter(tasks)
        sent, given, more = 0, 0, True
        while more or given < sent:
            while more and sent - given < WINDOW:
                block = [Entry(task, _key(task), sink, sent + i) for i, task in enumerate(islice(source, BLOCK))]
                more = len(block) == BLOCK
                sent += len(block)
                self._home.pool().submit(sorted(block, key=_entry_key))
            if given == sent:
                return
            while given not in arrived:
                token, answer = sink.get()
                arrived[token] = answer
            yield arrived.pop(given)
            given += 1


class _Home:
    """Where the pool of an executor lives: started late, closed at exit, left behind in a forked child."""

    _all: ClassVar["weakref.WeakSet[_Home]"] = weakref.WeakSet()

    def __init__(self, workers: int, limits: Limits) -> None:
        """No pool yet."""
        if workers < 1:
            raise ValueError(f"an executor needs at least one worker, not {workers}")
        self.workers, self.limits = workers, limits
        self._lock = threading.Lock()
        self._pool: Pool | None = None
        self._closed = False
        self._all.add(self)

    def pool(self) -> Pool:
        """The running pool.

        Raises:
            ExecutorError: it was closed.
        """
        pool = self._pool
        if pool is not None and pool.alive:
            return pool
        with self._lock:
            if self._closed:
                raise ExecutorError("the executor was closed")
            if self._pool is None or not self._pool.alive:
                self._pool = Pool(self.workers, self.limits)
                weakref.finalize(self, self._pool.close)
            return self._pool

    def pids(self) -> list[int]:
        """Process ids of the workers that run now."""
        pool = self._pool
        return pool.pids() if pool is not None else []

    def close(self) -> None:
        """Close the pool for good."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    @classmethod
    def close_all(cls) -> None:
        """At exit: leave no process behind."""
        for home in list(cls._all):
            home.close()

    @classmethod
    def leave_all(cls) -> None:
        """In a forked child: the pools are the parent's; the first use here starts new ones."""
        for home in list(cls._all):
            home._lock = threading.Lock()
            pool, home._pool = home._pool, None
            if pool is not None:
                pool.abandon()


atexit.register(_Home.close_all)
os.register_at_fork(after_in_child=_Home.leave_all)


def default_workers() -> int:
    """VERL_SQL_WORKERS, else the CPUs this process may use, at most 16."""
    named = os.environ.get("VERL_SQL_WORKERS")
    return int(named) if named else min(len(os.sched_getaffinity(0)), 16)


_shared: dict[float, Executor] = {}
_shared_lock = threading.Lock()


def shared_executor(workers: int | None = None, timeout: float | None = None) -> Executor:
    """The executor that everything in this process shares; its processes start at first use and end with the process.

    Args:
        workers: counts only in the first call, which sizes the pool.
        timeout: default timeout of the returned executor, in seconds; all of them share one pool.
    """
    seconds = 30.0 if timeout is None else float(timeout)
    executor = _shared.get(seconds)
    return executor if executor is not None and not executor._home._closed else _share(workers, seconds)


def _share(workers: int | None, seconds: float) -> Executor:
    """A new executor on the shared pool, or on a new one if that was closed."""
    with _shared_lock:
        executor = Executor(workers, seconds)
        homes = [other._home for other in _shared.values() if not other._home._closed]
        if homes:
            executor._home = homes[0]
        _shared[seconds] = executor
        return executor


def _unlock_shared() -> None:
    """In a forked child: another thread of the parent may have held the lock."""
    global _shared_lock
    _shared_lock = threading.Lock()


os.register_at_fork(after_in_child=_unlock_shared)


@lru_cache(maxsize=256)
def _names(names: tuple[str, ...]) -> tuple[str, ...]:
    """The comparators, checked."""
    return check_comparators(names)


def _checked_timeout(timeout: float) -> float:
    """A timeout that can be kept.

    Raises:
        ValueError: it is not a positive number of seconds up to a day.
    """
    seconds = float(timeout)
    if not 0 < seconds <= 86_400:
        raise ValueError(f"timeout must be a number of seconds between 0 and 86400, not {timeout}")
    return seconds


def _key(task: tuple[Any, ...]) -> tuple[str, str]:
    """Database and gold (or only) SQL of a task."""
    return task[1], task[2]


def _entry_key(entry: Entry) -> tuple[str, str]:
    """What entries are sorted by."""
    return entry.key


def _execution(answer: Answer) -> Execution:
    """The execution of a RUN answer."""
    if answer[1] is None:
        raise ExecutorError(answer[2])
    return _from_wire(answer[1])


def _comparison(answer: Answer) -> Comparison:
    """The comparison of a COMPARE answer."""
    if answer[1] is None:
        raise ExecutorError(answer[2])
    return Comparison(_from_wire(answer[1]), _from_wire(answer[2]), answer[3])


def _from_wire(fields: tuple[Any, ...]) -> Execution:
    """An Execution from its fields in order; one object for a result that is told of again, as golds are."""
    return _execution_of(fields) if fields[2] is None else Execution(_STATUS[fields[0]], *fields[1:])


@lru_cache(maxsize=512)
def _execution_of(fields: tuple[Any, ...]) -> Execution:
    """An Execution without rows. Its fields are of fixed types, so those that are equal are the same."""
    return Execution(_STATUS[fields[0]], *fields[1:])


def _checked(execution: Execution) -> Execution:
    """The execution, unless the database was at fault."""
    if not execution.data_fault:
        return execution
    raise (DatabaseNotFound if GONE in execution.message else DatabaseUnusable)(execution.message)


def _checked_comparison(comparison: Comparison) -> Comparison:
    """The comparison, unless a database was at fault."""
    if comparison.gold.data_fault or comparison.pred.data_fault:
        _checked(comparison.gold)
        _checked(comparison.pred)
    return comparison
