"""The parent's end of one worker process: start it, send to it without blocking, read from it, end it."""

import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import verl_sql
from verl_sql.database.limits import Limits
from verl_sql.database.wire import BOARD_BYTES, Board, Inbox, pack

_ROOT = str(Path(verl_sql.__file__).resolve().parent.parent)
PIPE_BYTES = 1 << 16
"""What a pipe holds; a larger buffer would only have to be allocated and given back."""

_BOOT = (
    "import sys; sys.path.append(sys.argv[1]); from verl_sql.database.worker import main; "
    "main(int(sys.argv[2]), int(sys.argv[3]))"
)


class WorkerProcess:
    """A running worker.

    It is a fresh interpreter started by `subprocess`, not by `multiprocessing`: nothing of the parent's `__main__` is
    imported, daemonic processes (Ray actors) may start it, and no thread of the parent is forked.

    Attributes:
        pid: process id.
        requests: descriptor that batches are written to, non-blocking.
        answers: descriptor that answers are read from, non-blocking.
        board: what the worker is at; readable after its death.
        unsent: bytes that the pipe did not take yet.
    """

    def __init__(self, limits: Limits) -> None:
        """Start the process; it answers its first batch as soon as it is up."""
        answers, answers_end = os.pipe()
        board = os.memfd_create("verl_sql_board")
        os.ftruncate(board, BOARD_BYTES)
        self.board = Board(board)
        self.board.clear()
        try:
            self._process = self._start(answers_end, board)
        except BaseException:
            os.close(answers)
            self.board.close()
            raise
        finally:
            os.close(answers_end)
            os.close(board)
        assert self._process.stdin is not None
        self.pid = self._process.pid
        self.answers = answers
        self.requests = self._process.stdin.fileno()
        self.unsent = memoryview(b"")
        self._inbox = Inbox()
        os.set_blocking(self.answers, False)
        os.set_blocking(self.requests, False)
        self._queue(pack(asdict(limits)))

    @staticmethod
    def _start(answers: int, board: int) -> subprocess.Popen[bytes]:
        """The new interpreter, without site packages and without the caller's environment variables for Python."""
        command = [sys.executable, "-I", "-S", "-c", _BOOT, _ROOT, str(answers), str(board)]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, bufsize=0, pass_fds=(answers, board)
        )

    def send(self, tasks: list[Any]) -> None:
        """Give it a batch; what the pipe does not take now waits in `unsent` for `flush`."""
        self.board.clear()
        self._queue(pack(tasks))

    def _queue(self, data: bytes) -> None:
        """Send bytes after those that wait."""
        self.unsent = memoryview(bytes(self.unsent) + data if self.unsent else data)
        self.flush()

    def flush(self) -> None:
        """Write what the pipe takes; a dead worker is noticed when it is read from."""
        while self.unsent:
            try:
                self.unsent = self.unsent[os.write(self.requests, self.unsent) :]
            except BlockingIOError:
                return
            except BrokenPipeError:
                self.unsent = memoryview(b"")

    def receive(self) -> list[Any] | None:
        """The messages that have arrived, or None once the worker is gone and everything it said was read."""
        try:
            data = os.read(self.answers, PIPE_BYTES)
        except BlockingIOError:
            return []
        return self._inbox.feed(data) if data else None

    def gone(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def kill(self) -> int:
        """End it now, wait for it, and free what it held here; its exit status (negative: the signal)."""
        self._process.kill()
        status = self._process.wait()
        self.abandon()
        return status

    def abandon(self) -> None:
        """Free what it held here without touching the process (in a forked child it is somebody else's)."""
        os.close(self.answers)
        assert self._process.stdin is not None
        self._process.stdin.close()
        self.board.close()
