"""Parts in, results out in the same order; in this process, in processes beside it, or on a cluster."""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain, islice
from queue import SimpleQueue
from typing import Any

from verl_sql.dataset.spreading.cluster import cluster_hands
from verl_sql.dataset.spreading.job import Hand, Job
from verl_sql.dataset.spreading.process import ProcessHand

AHEAD = 2
"""Parts a hand that are sent or done before the first result is taken."""


def spread(
    job: Job, parts: Iterable[Any], workers: int | None = None, ray_address: str | None = None, worth: int = 1
) -> Iterator[Any]:
    """The results of parts, in their order; few are in memory at a time.

    Args:
        job: what to do with each.
        parts: read as they are needed.
        workers: processes that work at once; None takes all cores (of the cluster, when there is an address).
        ray_address: of a Ray cluster; None stays on this machine.
        worth: parts a process at least, since it takes a moment to start: with fewer, fewer processes are started, and
            for one it is this one.

    Raises:
        SpreadError: a process ended, or there is no cluster.
    """
    if ray_address:
        yield from in_order(cluster_hands(job, ray_address, workers), parts)
        return
    cores, source = workers or all_cores(), iter(parts)
    first = list(islice(source, cores * worth))
    count = min(cores, len(first) // worth)
    if count > 1:
        yield from in_order([ProcessHand(job, count) for _ in range(count)], chain(first, source))
    elif first:
        with job.open(workers=cores, hands=1) as work:
            yield from map(work, chain(first, source))


def all_cores() -> int:
    """VERL_SQL_WORKERS, else the CPUs that this process may use."""
    return int(os.environ.get("VERL_SQL_WORKERS") or len(os.sched_getaffinity(0)))


def in_order(hands: Sequence[Hand], parts: Iterable[Any]) -> Iterator[Any]:
    """Give parts to whichever hand is free; the hands are closed in the end, and at once when something raises."""
    free: SimpleQueue[Hand] = SimpleQueue()
    for hand in hands:
        free.put(hand)

    def work(part: Any) -> Any:
        hand = free.get()
        try:
            return hand.work(part)
        finally:
            free.put(hand)

    waiting: deque[Future] = deque()
    pool = ThreadPoolExecutor(len(hands))
    try:
        for part in parts:
            waiting.append(pool.submit(work, part))
            if len(waiting) >= AHEAD * len(hands):
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()
        for hand in hands:
            hand.close()
        pool.shutdown()
