"""One place in the pool: its worker (or none), what waits for it, what it is doing, and who is to blame if it dies."""

import time
from collections import deque
from typing import NamedTuple

from verl_sql.database.entries import Entry
from verl_sql.database.limits import Limits
from verl_sql.database.process import WorkerProcess
from verl_sql.database.tasks import RUN
from verl_sql.database.wire import COMPARING, GOLD

NOTHING_RUNNING = -1

BEGIN_SECONDS = 300.0
"""A worker that has not begun its batch after so long is taken for dead."""


class Culprit(NamedTuple):
    """What a worker was at when it died: the entry and its side."""

    entry: Entry
    side: int
    overran: bool


class Slot:
    """One worker's place.

    Attributes:
        queue: entries that wait for this worker, those with its keys first of all.
        flight: the entries of the batch it has; entries that were answered or moved away stay in the list.
        worker: the process, None before the first batch and after a death.
        moved: time.monotonic of the last sign of progress.
        barren: workers of this slot that died in a row without giving any answer.
    """

    def __init__(self, limits: Limits) -> None:
        """Empty; the process is started by the first batch."""
        self._limits = limits
        self.queue: deque[Entry] = deque()
        self.flight: list[Entry] = []
        self.worker: WorkerProcess | None = None
        self.moved = 0.0
        self.barren = 0
        self._sent = 0.0

    @property
    def busy(self) -> bool:
        """Whether it has a batch."""
        return bool(self.flight)

    def launch(self, entries: list[Entry]) -> None:
        """Send a batch, starting a process if there is none."""
        if self.worker is None:
            self.worker = WorkerProcess(self._limits)
        for entry in entries:
            entry.owner = self
        self.flight = entries
        self.moved = self._sent = time.monotonic()
        self.worker.send([entry.task for entry in entries])

    def land(self, answers: list[tuple]) -> None:
        """Deliver answers of the batch."""
        self.moved = time.monotonic()
        if answers:
            self.barren = 0
        for answer in answers:
            self.flight[answer[0]].deliver(answer)

    def finish(self) -> tuple[float, int, list[Entry]]:
        """The batch is over: seconds it took, its size, and the entries that it left unanswered."""
        flight, self.flight = self.flight, []
        return self.moved - self._sent, len(flight), [e for e in flight if not e.done and e.owner is self]

    def overdue(self, now: float) -> bool:
        """Whether what it is at has overrun its deadline by more than the grace period, or it never began its batch."""
        if self.worker is None or not self.flight:
            return False
        index, _, deadline = self.worker.board.now()
        if index < 0:
            return now > self.moved + BEGIN_SECONDS
        return 0.0 < deadline < now - self._limits.grace

    def running(self) -> tuple[int, int]:
        """Index in `flight` and side of what it is at."""
        if self.worker is None:
            return NOTHING_RUNNING, -1
        index, side, _ = self.worker.board.now()
        return index, side

    def culprit(self) -> Culprit | None:
        """The entry that was running, if it was not answered."""
        assert self.worker is not None
        index, side, deadline = self.worker.board.now()
        if not 0 <= index < len(self.flight) or self.flight[index].done or self.flight[index].owner is not self:
            return None
        return Culprit(self.flight[index], side, 0.0 < deadline < time.monotonic())

    def give_up_rest(self, costly: set[tuple[str, str]]) -> list[Entry]:
        """Take back the second half of what it has not begun, for another worker; entries that share a gold query with
        the one that it is running stay (running that gold twice would gain nothing)."""
        assert self.worker is not None
        index, side = self.running()
        if index < 0:
            return []
        stay = {self.flight[index].key} if side == GOLD else set()
        first = index + 1 + (len(self.flight) - index - 1) // 2
        cut = next((i for i in range(max(first, index + 1), len(self.flight)) if self._free(i, stay, costly)), None)
        if cut is None or not all(self._free(i, stay, costly) for i in range(cut, len(self.flight))):
            return []
        self.worker.board.stop_before(cut)
        return [entry for entry in self.flight[cut:] if not entry.done and entry.owner is self]

    def _free(self, index: int, stay: set[tuple[str, str]], costly: set[tuple[str, str]]) -> bool:
        """Whether the entry at `index` may go to another worker."""
        key = self.flight[index].key
        return key not in stay and key not in costly


def blame(culprit: Culprit, status: int, limits: Limits) -> None:
    """Settle what an entry whose worker died comes to: a timeout, another try, or an error.

    Args:
        culprit: what the worker was at.
        status: its exit status, negative for a signal.
        limits: for the message.
    """
    entry, side = culprit.entry, culprit.side
    if culprit.overran and side == COMPARING:
        entry.assume(side, "too_large", f"comparing the results took more than {limits.compare_seconds:g} s")
    elif culprit.overran:
        entry.assume(side, "timeout", "ran past its deadline inside one built-in function; its worker was replaced")
    else:
        entry.attempts += 1
        if entry.attempts > 1:
            kind = "too_large" if side == COMPARING else "error"
            entry.assume(side, kind, f"its worker process died {entry.attempts} times while running it (exit {status})")


def settle(entry: Entry) -> None:
    """Answer a lone query whose outcome is assumed, without asking another worker."""
    assumed = entry.task[-1]
    if entry.task[0] == RUN and assumed:
        _, status, message = assumed[0]
        entry.deliver((0, (status, (), None, 0, 0.0, message, False, False, False, "")))
