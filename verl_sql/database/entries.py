"""Work that waits for a worker, and the places where its answers go."""

import asyncio
import threading
from queue import SimpleQueue
from typing import Any, Protocol

Answer = tuple[Any, ...]
"""(index, execution) or (index, gold, pred, values) as `tasks` builds them; (index, None, message) when we failed."""


class Sink(Protocol):
    """Where an answer goes; called once an entry, on the pool's thread."""

    def deliver(self, token: int, answer: Answer) -> None:
        """Take the answer to the entry that carries `token`."""


class Entry:
    """One task on its way to a worker and back.

    Attributes:
        task: see `tasks`; its last element is replaced when a side of it killed a worker.
        key: what should run on the same worker: (path, gold SQL) or (path, SQL).
        sink: where the answer goes.
        token: the sink's name for it.
        owner: the slot that has it now, queued or in flight.
        attempts: workers that died while it was running, for a reason other than its deadline.
        done: its answer was delivered.
        same: under which `remembered` knows it, None if it does not.
        followers: entries that came while it was under way and get its answer too.
    """

    __slots__ = ("attempts", "done", "followers", "key", "owner", "same", "sink", "task", "token")

    def __init__(self, task: tuple[Any, ...], key: tuple[str, str], sink: Sink, token: int = 0) -> None:
        """Not yet queued."""
        self.task, self.key, self.sink, self.token = task, key, sink, token
        self.owner: Any = None
        self.attempts = 0
        self.done = False
        self.same: Any = None
        self.followers: list[Entry] = []

    def assume(self, side: int, status: str, message: str) -> None:
        """From now on take one side's outcome as known instead of running it."""
        self.task = (*self.task[:-1], (*self.task[-1], (side, status, message)))

    def deliver(self, answer: Answer) -> None:
        """Hand the answer over, unless another worker was quicker."""
        if not self.done:
            self.done = True
            self.sink.deliver(self.token, answer)
            for follower in self.followers:
                follower.deliver(answer)


class OneSink:
    """A thread waits for one answer."""

    __slots__ = ("_answer", "_lock")

    def __init__(self) -> None:
        """No answer yet."""
        self._lock = threading.Lock()
        self._lock.acquire()
        self._answer: Answer = ()

    def deliver(self, token: int, answer: Answer) -> None:
        """Wake the waiting thread."""
        self._answer = answer
        self._lock.release()

    def wait(self) -> Answer:
        """The answer, as soon as it is there."""
        self._lock.acquire()
        return self._answer


class FutureSink:
    """A coroutine waits for one answer; no thread does."""

    __slots__ = ("_loop", "future")

    def __init__(self) -> None:
        """A future of the running loop."""
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Answer] = self._loop.create_future()

    def deliver(self, token: int, answer: Answer) -> None:
        """Wake the coroutine, if its loop still runs."""
        try:
            self._loop.call_soon_threadsafe(self._set, answer)
        except RuntimeError:
            return  # the loop was closed: nobody waits any more

    def _set(self, answer: Answer) -> None:
        """Fulfil the future on its own loop, unless the waiter was cancelled."""
        if not self.future.done():
            self.future.set_result(answer)


class StreamSink:
    """A thread takes the answers to many entries as they come."""

    __slots__ = ("_queue",)

    def __init__(self) -> None:
        """Empty."""
        self._queue: SimpleQueue[tuple[int, Answer]] = SimpleQueue()

    def deliver(self, token: int, answer: Answer) -> None:
        """Append to the stream."""
        self._queue.put((token, answer))

    def get(self) -> tuple[int, Answer]:
        """The next (token, answer), waiting for it."""
        return self._queue.get()
