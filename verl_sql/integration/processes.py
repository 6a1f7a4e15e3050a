"""The processes below this one: listing them, adopting the orphaned ones and ending them all (Linux, through /proc).

Ray starts its daemons in sessions of their own, and they outlive a driver that is killed. A child subreaper inherits
such orphans, so that whatever a training run left behind can still be found as a descendant and ended.
"""

import ctypes
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


@dataclass(frozen=True, slots=True)
class Process:
    """One living process; `pid` and `started` (clock ticks since boot) together are unique, a pid alone is not.

    Attributes:
        title: the command line, or what the process called itself by setproctitle.
    """

    pid: int
    parent: int
    started: int
    title: str

    @property
    def key(self) -> tuple[int, int]:
        """What stays the same while the process lives, whatever title it takes."""
        return self.pid, self.started


def adopt_orphans() -> None:
    """Make this process the new parent of every descendant that loses its own (a no-op where prctl is missing)."""
    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def read_process(pid: int) -> Process | None:
    """The process with this id, or None if it is gone or a zombie."""
    folder = Path("/proc") / str(pid)
    try:
        stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        title = (folder / "cmdline").read_bytes()
    except OSError:
        return None
    # proc(5): the name stands in parentheses and may hold any character; fields are counted behind the last one.
    fields = stat.rpartition(")")[2].split()
    if fields[0] in "ZX":
        return None
    words = title.replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return Process(pid=pid, parent=int(fields[1]), started=int(fields[19]), title=words)


def descendants(root: int | None = None) -> list[Process]:
    """Every living process below `root` (this process if None), parents before their children."""
    children: dict[int, list[Process]] = defaultdict(list)
    for entry in os.listdir("/proc"):
        process = read_process(int(entry)) if entry.isdigit() else None
        if process is not None:
            children[process.parent].append(process)
    found: list[Process] = []
    queue = list(children[os.getpid() if root is None else root])
    while queue:
        process = queue.pop(0)
        found.append(process)
        queue.extend(children[process.pid])
    return found


def reap_orphans(spare: Iterable[int] = ()) -> None:
    """Collect the exit status of adopted processes that have ended; those in `spare` are left to their own owner."""
    kept = set(spare)
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) not in kept and _is_dead_child(int(entry)):
            try:
                os.waitpid(int(entry), os.WNOHANG)
            except OSError:
                continue


def _is_dead_child(pid: int) -> bool:
    """Whether this process is a zombie and ours to collect."""
    try:
        stat = (Path("/proc") / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    fields = stat.rpartition(")")[2].split()
    return fields[0] == "Z" and int(fields[1]) == os.getpid()


def end_descendants(grace: float = 5.0, spare: Iterable[int] = ()) -> list[Process]:
    """End every process below this one: SIGTERM first, SIGKILL after `grace` seconds.

    Args:
        grace: seconds between the two signals.
        spare: ids of direct children whose exit status somebody else waits for (they are ended all the same).

    Returns:
        the processes that were alive at the start.
    """
    kept = tuple(spare)
    alive = descendants()
    _signal(alive, signal.SIGTERM)
    _wait_until(lambda: not _living(kept), grace)
    deadline = time.monotonic() + grace + 5.0
    while (rest := _living(kept)) and time.monotonic() < deadline:
        _signal(rest, signal.SIGKILL)
        time.sleep(0.1)
    return alive


def _living(spare: tuple[int, ...]) -> list[Process]:
    """The descendants that still live, with the ended ones collected."""
    reap_orphans(spare)
    return descendants()


def _signal(processes: Iterable[Process], number: signal.Signals) -> None:
    """Send a signal to each process that is still the one it was."""
    for process in processes:
        now = read_process(process.pid)
        if now is None or now.key != process.key:
            continue
        try:
            os.kill(process.pid, number)
        except OSError:
            continue


def _wait_until(done: Callable[[], bool], seconds: float) -> None:
    """Poll `done` until it is true or the time is over."""
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:
        time.sleep(0.1)
