"""Hands on a Ray cluster: one actor a core, wherever Ray puts it.

The machines see the same databases under the same paths and have this package installed. An actor whose machine dies is
started again elsewhere with the part it had.
"""

import socket
from typing import Any

from verl_sql.dataset.spreading.job import Job, LateWork, SpreadError

RESTARTS = 3
KNOCK_SECONDS = 10.0


class ClusterHand:
    """An actor.

    Args:
        ray: the connected module.
        job: what to do.
        hands: how many such hands there are.
    """

    def __init__(self, ray: Any, job: Job, hands: int) -> None:
        """Ask for the actor; it is waited for at the first part."""
        self._ray = ray
        actor = ray.remote(num_cpus=1, max_restarts=RESTARTS, max_task_retries=RESTARTS)(_Worker)
        self._actor = actor.remote(job, hands)

    def work(self, part: Any) -> Any:
        """See `Hand`."""
        errors = self._ray.exceptions
        try:
            return self._ray.get(self._actor.work.remote(part))
        except errors.RayTaskError as error:
            raise (error.cause or error) from None
        except errors.RayError as error:
            raise SpreadError(f"a worker of the cluster is gone: {error}".splitlines()[0]) from error

    def close(self) -> None:
        """See `Hand`."""
        self._ray.kill(self._actor)


class _Worker:
    """What an actor holds open."""

    def __init__(self, job: Job, hands: int) -> None:
        self._work = LateWork(job, hands)

    def work(self, part: Any) -> Any:
        """The result of one part."""
        return self._work(part)


def cluster_hands(job: Job, address: str, workers: int | None) -> list[ClusterHand]:
    """A hand for every core of the cluster, or so many as asked for.

    Args:
        job: what to do.
        address: of the cluster, as `ray.init` takes it (`auto`, `host:port`, `ray://host:port`).
        workers: how many hands; None takes the cluster's cores.

    Raises:
        SpreadError: Ray is not installed, or there is no cluster.
    """
    _knock(address)
    try:
        import ray
    except ImportError as error:
        raise SpreadError("ray_address needs Ray, which is not installed") from error
    try:
        ray.init(address, ignore_reinit_error=True, log_to_driver=False, logging_level="error")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise SpreadError(f"no Ray cluster at {address}: {str(error).splitlines()[0]}") from error
    count = workers or int(ray.cluster_resources().get("CPU", 1))
    return [ClusterHand(ray, job, count) for _ in range(count)]


def _knock(address: str) -> None:
    """See that somebody listens at `host:port`; Ray itself would wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return  # `auto` and the like: Ray finds out at once
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=KNOCK_SECONDS).close()
    except OSError as error:
        raise SpreadError(f"no Ray cluster at {address}: {error}") from None
