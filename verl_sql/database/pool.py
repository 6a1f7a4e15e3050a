"""The pool: one thread that hands entries to worker processes, reads answers, replaces workers that overrun or die."""

import contextlib
import logging
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Iterable

from verl_sql.database.doomed import Doomed
from verl_sql.database.entries import Entry
from verl_sql.database.limits import Limits
from verl_sql.database.remembered import Remembered
from verl_sql.database.slot import Culprit, Slot, blame, settle
from verl_sql.database.tasks import COMPARE
from verl_sql.database.wire import GOLD

logger = logging.getLogger("verl_sql.database")

TICK_SECONDS = 0.05
"""How often deadlines are looked at while anything runs."""

BATCH_SECONDS, BATCH_MIN, BATCH_MAX = 0.02, 8, 64
"""A batch should take about this long, within these numbers of entries; one that takes longer is shared later on."""

SPLIT_SECONDS = 0.05
"""A batch that gave no answer for so long is shared with idle workers."""

STEAL_SECONDS = 0.005
"""A short queue is left to its worker, which remembers its golds, unless that worker gave no answer for so long."""

COSTLY_SECONDS, COSTLY_MAX = 1.0, 10_000
"""A gold query slower than this is run by one worker only; so many of them are known."""

BARREN_MAX = 3
"""Workers of a slot that may die in a row before their first answer."""


class Pool:
    """Worker processes and the thread that drives them. All state but the inbox belongs to that thread.

    Args:
        workers: number of worker processes.
        limits: what queries may use.
    """

    def __init__(self, workers: int, limits: Limits) -> None:
        """Start the thread; processes start when there is work for them."""
        self._limits = limits
        self._slots = [Slot(limits) for _ in range(workers)]
        self._inbox: deque[Entry] = deque()
        self._woken = False
        self._closing = False
        self._failure = ""
        self._seconds_each = 0.001
        self._next_look = 0.0
        self._costly: set[tuple[str, str]] = set()
        self._doomed = Doomed()
        self._remembered = Remembered()
        self._wake_read, self._wake_write = socket.socketpair()
        self._wake_read.setblocking(False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_read, selectors.EVENT_READ, None)
        self._thread = threading.Thread(target=self._run, name="verl-sql-pool", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it takes work."""
        return not self._closing and not self._failure

    def pids(self) -> list[int]:
        """Process ids of the workers that run now."""
        return [slot.worker.pid for slot in self._slots if slot.worker is not None]

    def submit(self, entries: Iterable[Entry]) -> None:
        """Queue entries; each sink is told exactly once, even if the pool is closed meanwhile. Any thread may call."""
        self._inbox.extend(entries)
        if not self.alive:
            self._fail_inbox()
        elif not self._woken:
            self._woken = True
            self._wake()

    def _wake(self) -> None:
        """Wake the thread; if it was closed just now, what waits in the inbox is failed here."""
        try:
            self._wake_write.send(b"x")
        except OSError:
            self._fail_inbox()

    def close(self) -> None:
        """End the thread and every worker; entries not answered yet are failed."""
        if self._closing:
            return
        self._closing = True
        self._wake()
        if threading.current_thread() is self._thread:
            return
        self._thread.join()
        self._free()
        self._fail_inbox()

    def abandon(self) -> None:
        """In a forked child: free the descriptors, leave the parent's workers alone."""
        self._closing = True
        for slot in self._slots:
            if slot.worker is not None:
                slot.worker.abandon()
                slot.worker = None
        self._free()

    def _free(self) -> None:
        """Close the descriptors of the thread."""
        self._selector.close()
        self._wake_read.close()
        self._wake_write.close()

    # --- the thread ---

    def _run(self) -> None:
        """Serve until closed; a mistake of ours fails everything that waits instead of hanging it."""
        try:
            while not self._closing:
                self._step()
        except Exception as error:
            logger.exception("the SQL worker pool stopped")
            self._failure = f"the worker pool stopped: {error!r}"
        finally:
            self._fail_all()

    def _step(self) -> None:
        """Wait for something to happen, and act on it."""
        for key, events in self._selector.select(self._patience()):
            if key.data is None:
                self._drain_wake()
            elif events & selectors.EVENT_WRITE:
                self._flush(key.data)
            else:
                self._receive(key.data)
        self._sort_inbox()
        if time.monotonic() >= self._next_look:
            self._end_overdue()
            self._next_look = time.monotonic() + TICK_SECONDS
        for choose in (self._own_batch, self._foreign_batch):
            for slot in self._slots:
                if not slot.busy and (entries := choose(slot)):
                    self._launch(slot, entries)

    def _patience(self) -> float | None:
        """Seconds until something should be looked at though nothing happened; None when nothing runs.

        While every worker is busy nobody needs to wake this thread for a new entry: the next answer does. Otherwise
        the flag is cleared before the inbox is looked at, so that an entry whose sender saw it set is not missed.
        """
        busy = [slot.busy for slot in self._slots]
        self._woken = all(busy)
        if self._woken:
            return TICK_SECONDS
        if self._inbox:
            return 0.0
        if not any(busy):
            return None
        return STEAL_SECONDS if any(slot.queue for slot in self._slots) else TICK_SECONDS

    def _drain_wake(self) -> None:
        """Forget the wake-ups."""
        with contextlib.suppress(BlockingIOError):
            self._wake_read.recv(4096)

    def _sort_inbox(self) -> None:
        """Give every new entry to the slot of its key, so that a gold query meets the worker that remembers it. What is
        known or under way is not asked again."""
        self._remembered.look_again()
        for _ in range(len(self._inbox)):  # those that came before files are looked at
            entry = self._inbox.popleft()
            self._doomed.apply(entry)
            if self._remembered.settle(entry):
                continue
            slot = self._slots[hash(entry.key) % len(self._slots)]
            entry.owner = slot
            slot.queue.append(entry)

    def _batch_size(self) -> int:
        """How many entries a batch should hold, from the time that entries took lately."""
        return max(BATCH_MIN, min(BATCH_MAX, int(BATCH_SECONDS / self._seconds_each)))

    def _own_batch(self, slot: Slot) -> list[Entry]:
        """The next entries of a slot's own queue."""
        return [slot.queue.popleft() for _ in range(min(self._batch_size(), len(slot.queue)))]

    def _foreign_batch(self, slot: Slot) -> list[Entry]:
        """What an idle slot without a queue can take over: some of the longest other queue, if its worker will not come
        to it soon, or part of a batch that does not move."""
        longest = max(self._slots, key=lambda other: len(other.queue))
        if not longest.queue:
            return self._split()
        size = self._batch_size()
        if len(longest.queue) <= size and time.monotonic() - longest.moved < STEAL_SECONDS:
            return []
        return self._steal(longest, min(size, (len(longest.queue) + 1) // 2))

    def _steal(self, victim: Slot, count: int) -> list[Entry]:
        """Up to `count` entries from the end of another slot's queue; golds that are slow or running there stay."""
        index, side = victim.running()
        stay = {victim.flight[index].key} if side == GOLD and 0 <= index < len(victim.flight) else set()
        taken: list[Entry] = []
        kept: list[Entry] = []
        while len(taken) < count and victim.queue:
            entry = victim.queue.pop()
            (kept if entry.key in stay or entry.key in self._costly else taken).append(entry)
        victim.queue.extend(reversed(kept))
        return taken[::-1]

    def _split(self) -> list[Entry]:
        """Part of a batch that has not moved for a while."""
        now = time.monotonic()
        for slot in self._slots:
            if len(slot.flight) > 1 and now - slot.moved > SPLIT_SECONDS and (rest := slot.give_up_rest(self._costly)):
                return rest
        return []

    def _launch(self, slot: Slot, entries: list[Entry]) -> None:
        """Send a batch to the slot's worker, and watch the worker if it is new."""
        fresh = slot.worker is None
        slot.launch(entries)
        assert slot.worker is not None
        if fresh:
            self._selector.register(slot.worker.answers, selectors.EVENT_READ, slot)
        if slot.worker.unsent:
            self._selector.register(slot.worker.requests, selectors.EVENT_WRITE, slot)

    def _flush(self, slot: Slot) -> None:
        """The pipe to a worker takes more."""
        if slot.worker is None:
            return
        slot.worker.flush()
        if not slot.worker.unsent:
            self._selector.unregister(slot.worker.requests)

    def _receive(self, slot: Slot) -> None:
        """Read what a worker says."""
        if slot.worker is None:
            return
        messages = slot.worker.receive()
        if messages is None:
            self._bury(slot)
            return
        for message in messages:
            if len(message) == 3:
                self._take(slot, *message)

    def _take(self, slot: Slot, answers: list[tuple], notices: list[str], last: int) -> None:
        """One message of answers; the last of a batch frees the worker, or ends one that is worn out."""
        for notice in notices:
            logger.warning("%s", notice)
        slot.land(answers)
        for answer in answers:
            self._remembered.note(slot.flight[answer[0]], answer)
        self._note_costly(slot, answers)
        if not last:
            return
        seconds, size, left = slot.finish()
        self._seconds_each += 0.2 * (seconds / size - self._seconds_each)
        slot.queue.extendleft(reversed(left))
        if last == 2:
            self._end_worker(slot)

    def _note_costly(self, slot: Slot, answers: list[tuple]) -> None:
        """Remember which gold queries are slow."""
        for answer in answers:
            entry = slot.flight[answer[0]]
            if entry.task[0] == COMPARE and answer[1] is not None and answer[1][4] > COSTLY_SECONDS:
                if len(self._costly) >= COSTLY_MAX:
                    self._costly.clear()
                self._costly.add(entry.key)

    def _end_overdue(self) -> None:
        """Kill workers that overran, and notice those that are gone without their pipe saying so. What a worker said
        before is read first: this thread may itself have been held up."""
        for slot in self._slots:
            if self._lost(slot):
                self._receive(slot)
                if self._lost(slot):
                    self._bury(slot)

    @staticmethod
    def _lost(slot: Slot) -> bool:
        """Whether a slot's worker overran or is gone, with a batch in its hands."""
        return slot.worker is not None and slot.busy and (slot.overdue(time.monotonic()) or slot.worker.gone())

    def _bury(self, slot: Slot) -> None:
        """A worker is dead or must die: settle what it was at and queue what it had; the next batch starts another."""
        culprit = slot.culprit()
        if culprit is None:
            slot.barren += 1
        elif culprit.overran:
            self._judge(culprit, 0)
        status = self._end_worker(slot)
        if culprit is not None and not culprit.overran:
            self._judge(culprit, status)
        _, _, left = slot.finish()
        slot.queue.extendleft(reversed(left))
        if slot.barren >= BARREN_MAX:
            raise RuntimeError(f"{BARREN_MAX} worker processes died before their first answer (exit {status})")

    def _judge(self, culprit: Culprit, status: int) -> None:
        """Settle what the entry that a worker died of comes to; a lone query is answered at once."""
        blame(culprit, status, self._limits)
        self._doomed.note(culprit)
        settle(culprit.entry)

    def _end_worker(self, slot: Slot) -> int:
        """Kill a slot's worker and forget its descriptors; the exit status."""
        worker, slot.worker = slot.worker, None
        if worker is None:
            return 0
        self._selector.unregister(worker.answers)
        if worker.unsent:
            self._selector.unregister(worker.requests)
        return worker.kill()

    def _fail_all(self) -> None:
        """The thread ends: end every worker and answer everything that waits with our failure."""
        self._failure = self._failure or "the executor was closed"
        for slot in self._slots:
            self._end_worker(slot)
            for entry in (*slot.flight, *slot.queue):
                entry.deliver((0, None, self._failure))
        self._fail_inbox()

    def _fail_inbox(self) -> None:
        """Answer what no thread will look at any more."""
        while self._inbox:
            try:
                entry = self._inbox.popleft()
            except IndexError:
                return
            entry.deliver((0, None, self._failure or "the executor was closed"))
