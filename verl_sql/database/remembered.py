"""Comparisons that were made already or are under way: the same completion again costs no worker.

In a group of rollouts many completions are the same SQL. An answer is remembered for the state that its database file
was in before the queries were sent: a file that changed since, or has another WAL, is asked anew.
"""

from typing import Any

from verl_sql.database.entries import Answer, Entry
from verl_sql.database.guard import Identity, Missing, identify
from verl_sql.database.tasks import COMPARE, LASTING

MOST, MOST_CHARACTERS = 16_384, 16 << 20
"""So many answers and so many characters of SQL are held; then all are let go."""

Key = tuple[tuple[Any, ...], Identity]


class Remembered:
    """Answers to COMPARE tasks by task and state of the database; used by the pool's thread alone."""

    def __init__(self) -> None:
        """Empty."""
        self._known: dict[Key, Answer] = {}
        self._under_way: dict[Key, Entry] = {}
        self._states: dict[str, Identity | None] = {}
        self._characters = 0

    def look_again(self) -> None:
        """From now on files are looked at anew, each once until the next call."""
        self._states.clear()

    def settle(self, entry: Entry) -> bool:
        """Answer a new entry from memory, or let it share the answer of one that is under way; False if it must run.

        Entries whose variants are asked too, and those of a file that is gone, always run: a worker knows best.
        """
        key = self._key(entry.task)
        if key is None:
            return False
        if (answer := self._known.get(key)) is not None:
            entry.deliver(answer)
            return True
        leader = self._under_way.get(key)
        if leader is not None and not leader.done:
            leader.followers.append(entry)
            return True
        entry.same = key
        self._under_way[key] = entry
        return False

    def note(self, entry: Entry, answer: Answer) -> None:
        """An entry was answered by a worker."""
        key = entry.same
        if key is None:
            return
        self._under_way.pop(key, None)
        if len(answer) > LASTING and answer[LASTING]:
            self._keep(key, answer)

    def _keep(self, key: Key, answer: Answer) -> None:
        """Remember, within bounds."""
        if len(self._known) >= MOST or self._characters >= MOST_CHARACTERS:
            self._known.clear()
            self._characters = 0
        self._known[key] = answer
        self._characters += len(key[0][2]) + len(key[0][3])

    def _key(self, task: tuple[Any, ...]) -> Key | None:
        """What entries that may share an answer have in common; None for those that may not."""
        if task[0] != COMPARE or task[4]:
            return None
        path = task[1]
        if path not in self._states:
            self._states[path] = _state(path)
        state = self._states[path]
        return (task, state) if state is not None else None


def _state(path: str) -> Identity | None:
    """The file as it is now, None when it is gone."""
    try:
        return identify(path)
    except Missing:
        return None
