"""What is spread: a job that can be sent somewhere else and opened there."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Protocol

Work = Callable[[Any], Any]
"""One part in, its result out; both can be pickled."""


class SpreadError(RuntimeError):
    """The work could not be spread: a process ended, or the cluster cannot be reached."""


class Job(Protocol):
    """A description of work that can be pickled."""

    def open(self, workers: int, hands: int) -> AbstractContextManager[Work]:
        """Everything the work needs, held open while it lasts.

        Args:
            workers: processes that run queries in this place.
            hands: places that do the same job at once, which share what an endpoint bears.
        """
        ...


class LateWork:
    """A job that is opened at the first part, so that what goes wrong then is that part's exception."""

    def __init__(self, job: Job, hands: int) -> None:
        """Nothing is open yet."""
        self._job, self._hands = job, hands
        self._stack = ExitStack()
        self._work: Work | None = None

    def __call__(self, part: Any) -> Any:
        """The result of one part."""
        if self._work is None:
            self._work = self._stack.enter_context(self._job.open(workers=1, hands=self._hands))
        return self._work(part)

    def close(self) -> None:
        """Close what was opened."""
        self._stack.close()


class Hand(Protocol):
    """A place that works on one part at a time."""

    def work(self, part: Any) -> Any:
        """The result of one part; raises what the work raises.

        Raises:
            SpreadError: the place is gone.
        """
        ...

    def close(self) -> None:
        """End it now; a part that it works on is lost."""
        ...
