"""The worker process: reads batches of tasks from its standard input, answers on a pipe of its own, trusts no SQL.

Started as a fresh interpreter (never forked), without site packages, so that it is up in a few hundredths of a second
and holds nothing of its parent. It ends when its parent does.
"""

import os
import resource
import select
import signal
import sqlite3
import time
from typing import Any

from verl_sql.database.tasks import TaskRunner, broken
from verl_sql.database.wire import Board, pack, read_message, write_all

FLUSH_SECONDS = 0.02
"""How long finished answers may wait for the rest of their batch."""

ORPHAN_SECONDS = 5.0
"""How often an idle worker looks whether its parent still lives."""


class Worker:
    """One worker's loop.

    Args:
        requests: file descriptor that batches are read from.
        answers: file descriptor that answers are written to.
        board: the page shared with the parent.
        limits: the fields of `limits.Limits`.
    """

    def __init__(self, requests: int, answers: int, board: Board, limits: dict[str, Any]) -> None:
        """Ready to serve."""
        self._requests, self._answers, self._board, self._limits = requests, answers, board, limits
        self._parent = os.getppid()
        self._tasks = TaskRunner(limits, self._enter)
        self._statm = os.open("/proc/self/statm", os.O_RDONLY)

    def _enter(self, index: int, side: int, deadline: float) -> None:
        """Say on the board what starts now, and arrange to die if neither it nor the parent ends it in time."""
        self._board.enter(index, side, deadline)
        if deadline:
            self._arm(deadline)

    def _arm(self, deadline: float) -> None:
        """Die some time after the deadline, unless the timer is set anew."""
        signal.setitimer(signal.ITIMER_REAL, max(deadline - time.monotonic(), 0.0) + 4 * self._limits["grace"] + 1.0)

    def serve(self) -> None:
        """Answer batches until the parent is gone or this process is worn out."""
        write_all(self._answers, pack((os.getpid(), sqlite3.sqlite_version)))
        while not self._tasks.runner.tired and self._wait():
            self._serve_batch(read_message(self._requests))

    def _wait(self) -> bool:
        """Wait for a batch; False when the parent is gone."""
        while not select.select([self._requests], [], [], ORPHAN_SECONDS)[0]:
            if os.getppid() != self._parent:
                return False
        return True

    def _serve_batch(self, tasks: list[tuple[Any, ...]]) -> None:
        """Answer (answers, notices, last) messages: some answers at a time, `last` = 1 at the end, 2 before leaving."""
        runner = self._tasks.runner
        runner.begin_message()
        answers: list[tuple[Any, ...]] = []
        flushed = time.monotonic()
        for index, task in enumerate(tasks):
            if index >= self._board.limit():
                break
            answers.append(self._do(index, task))
            if time.monotonic() - flushed > FLUSH_SECONDS:
                self._send(answers, runner.notices, 0)
                answers, runner.notices, flushed = [], [], time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._board.leave()
        runner.tired = runner.tired or self._worn_out()
        self._send(answers, runner.notices, 2 if runner.tired else 1)

    def _do(self, index: int, task: tuple[Any, ...]) -> tuple[Any, ...]:
        """One answer; a mistake of ours is an answer too, so that it reaches a person."""
        try:
            return self._tasks.do(index, task)
        except MemoryError:
            self._tasks.runner.rest()
            return broken(index, "a worker ran out of memory between queries")
        except Exception:
            import traceback  # only here: a worker should start fast

            return broken(index, traceback.format_exc())

    def _send(self, answers: list[tuple[Any, ...]], notices: list[str], last: int) -> None:
        write_all(self._answers, pack((answers, notices, last)))

    def _worn_out(self) -> bool:
        """Whether resident memory grew beyond the mark. (Not `ru_maxrss`: a process inherits its parent's, and a parent
        that has torch loaded would wear its workers out before they began.)"""
        pages = int(os.pread(self._statm, 128, 0).split()[1])
        return pages * resource.getpagesize() > self._limits["recycle_memory_mb"] << 20


def _limit_process(limits: dict[str, Any]) -> None:
    """Bound this process's memory, let it write no file of any size, leave no core, and let Ctrl-C go to the parent."""
    memory = limits["worker_memory_mb"] << 20
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGALRM, signal.SIGTERM))


def main(answers: int, board: int) -> None:
    """Serve on standard input and the given file descriptors until the parent is gone."""
    try:
        limits = read_message(0)
        _limit_process(limits)
        Worker(0, answers, Board(board), limits).serve()
    except (EOFError, BrokenPipeError):
        pass
    os._exit(0)
