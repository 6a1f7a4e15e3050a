"""A hand in a process of its own: a fresh interpreter that reads parts from its standard input.

It ends when its input does, so also when the parent is killed. What it prints goes to standard error.
"""

import os
import pickle
import signal
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import verl_sql
from verl_sql.dataset.spreading.job import Job, LateWork, SpreadError, Work

_ROOT = str(Path(verl_sql.__file__).resolve().parent.parent)
_BOOT = "import sys; sys.path.append(sys.argv[1]); from verl_sql.dataset.spreading.process import main; main()"


class ProcessHand:
    """The parent's end.

    Args:
        job: what to do.
        hands: how many such hands there are.
    """

    def __init__(self, job: Job, hands: int) -> None:
        """Start the process; it is waited for at the first part."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, _ROOT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._send((job, hands))

    def work(self, part: Any) -> Any:
        """See `Hand`."""
        self._send(part)
        assert self._process.stdout is not None
        try:
            good, value = pickle.load(self._process.stdout)
        except (EOFError, pickle.UnpicklingError):
            raise SpreadError(f"a worker process ended with status {self._process.wait()}") from None
        if good:
            return value
        raise value

    def close(self) -> None:
        """See `Hand`."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            with suppress(OSError):
                pipe.close()

    def _send(self, content: Any) -> None:
        """Write to the process; that it is gone is noticed when it is read from."""
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            pickle.dump(content, self._process.stdin)
            self._process.stdin.flush()


def main() -> None:
    """The child's end: the job first, then parts until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    job, hands = pickle.load(source)
    with closing(LateWork(job, hands)) as work, suppress(BrokenPipeError, EOFError):
        while True:
            answers.write(_answer(work, pickle.load(source)))
            answers.flush()


def _answer(work: Work, part: Any) -> bytes:
    """Whether the part went well, and its result or the exception; one that cannot travel goes as text."""
    try:
        return pickle.dumps((True, work(part)))
    except Exception as error:
        try:
            packed = pickle.dumps((False, error))
            pickle.loads(packed)
            return packed
        except Exception:
            return pickle.dumps((False, RuntimeError(f"{type(error).__name__}: {error}")))
