"""A process reward model in the reward function's own process: no server, for models that are small beside the policy.

Texts that wait are judged together, and equal ones once.
"""

import asyncio
import os
import threading
from collections import OrderedDict
from concurrent.futures import Future
from functools import lru_cache
from queue import Empty, SimpleQueue

from verl_sql.prm.scoring import StepScorer, TransformersScorer
from verl_sql.prm.served import REMEMBERED

TOGETHER = 256
"""Texts that are judged at once."""

Scores = tuple[float, ...]


class LocalPRM:
    """Judges from many threads and event loops, on one thread of its own."""

    def __init__(self, scorer: StepScorer) -> None:
        """Take the loaded model and start the thread."""
        self._scorer = scorer
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Future[Scores]] = OrderedDict()
        self._waiting: SimpleQueue[str] = SimpleQueue()
        threading.Thread(target=self._judge, name="prm", daemon=True).start()

    def ask(self, text: str) -> Scores:
        """P(correct) at each tag of a rendered chain, waited for in this thread."""
        return self._asked(text).result()

    async def aask(self, text: str) -> Scores:
        """`ask`, awaited."""
        return await asyncio.wrap_future(self._shared(text))

    def _asked(self, text: str) -> "Future[Scores]":
        """The scores, known, under way, or asked for now."""
        with self._lock:
            if text in self._known:
                self._known.move_to_end(text)
                return self._known[text]
            future: Future[Scores] = Future()
            self._known[text] = future
            self._waiting.put(text)
            if len(self._known) > REMEMBERED and next(iter(self._known.values())).done():
                self._known.popitem(last=False)
            return future

    def _shared(self, text: str) -> "Future[Scores]":
        """A future of the caller's own: one that is cancelled takes no other caller's answer away."""
        own: Future[Scores] = Future()

        def pass_on(done: "Future[Scores]") -> None:
            if own.set_running_or_notify_cancel():
                error = done.exception()
                own.set_exception(error) if error else own.set_result(done.result())

        self._asked(text).add_done_callback(pass_on)
        return own

    def _judge(self) -> None:
        """The thread: take what waits, judge it, hand the scores out; a failure is remembered by nobody."""
        while True:
            texts = self._take()
            with self._lock:
                futures = [self._known[text] for text in texts]
            try:
                found = [tuple(scores) for scores in self._scorer.score(texts)]
            except Exception as error:  # whatever it is, those who wait must hear of it
                with self._lock:
                    for text in texts:
                        self._known.pop(text, None)
                for future in futures:
                    future.set_exception(error)
                continue
            for future, scores in zip(futures, found, strict=True):
                future.set_result(scores)

    def _take(self) -> list[str]:
        """The texts that wait, at least one."""
        texts = [self._waiting.get()]
        while len(texts) < TOGETHER:
            try:
                texts.append(self._waiting.get_nowait())
            except Empty:
                break
        return texts


def local_prm(folder: str) -> LocalPRM:
    """The model of a folder, loaded once a process."""
    return _loaded(folder, os.getpid())


@lru_cache(maxsize=2)
def _loaded(folder: str, process: int) -> LocalPRM:
    """`process` is part of the key: a thread does not survive a fork."""
    return LocalPRM(TransformersScorer(folder))
