"""Gold queries that are known to kill workers: told once, they cost no second worker."""

from collections import OrderedDict

from verl_sql.database.entries import Entry
from verl_sql.database.guard import Identity, Missing, identify
from verl_sql.database.slot import Culprit
from verl_sql.database.tasks import COMPARE
from verl_sql.database.wire import GOLD

DOOMED_MAX = 1000
MESSAGE = "this gold query ran past its deadline inside one built-in function before; it was not tried again"


class Doomed:
    """Golds that overran inside one built-in function, by database file and SQL, with the seconds they had."""

    def __init__(self) -> None:
        """None known."""
        self._known: OrderedDict[tuple[str, str], tuple[Identity, float]] = OrderedDict()

    def note(self, culprit: Culprit) -> None:
        """Remember what killed a worker, if it was a gold query that overran."""
        entry = culprit.entry
        if entry.task[0] != COMPARE or culprit.side != GOLD or not culprit.overran:
            return
        identity = _identity(entry.key[0])
        if identity is not None:
            self._known[entry.key] = identity, _timeout(entry)
        if len(self._known) > DOOMED_MAX:
            self._known.popitem(last=False)

    def apply(self, entry: Entry) -> None:
        """Spare an entry its gold query, if that is known, allowed no more time now, and the file is the same."""
        if not self._known or entry.task[0] != COMPARE or (known := self._known.get(entry.key)) is None:
            return
        identity, timeout = known
        if _timeout(entry) <= timeout and _identity(entry.key[0]) == identity:
            entry.assume(GOLD, "timeout", MESSAGE)


def _timeout(entry: Entry) -> float:
    """Seconds a COMPARE entry allows a query."""
    return entry.task[-2]


def _identity(path: str) -> Identity | None:
    """The file as it is now, None when it is gone."""
    try:
        return identify(path)
    except Missing:
        return None
