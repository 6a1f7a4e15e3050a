"""Golds that data preparation saw fail: not run again, and no completion of theirs waits for them.

Only what does not depend on the prediction is taken from the cache: status, seconds, message. A gold that ran is run
again, since its rows are needed: every reward logs the strict `acc_bag` beside its own comparator, and the recorded
digest knows sets of rows only.
"""

import asyncio
from pathlib import Path

from verl_sql.database.execution import Comparison, Execution, Status
from verl_sql.database.gold_cache import GoldCache, chosen_gold_cache
from verl_sql.rewards.settings import Settings

NOT_RUN = Execution(Status.ERROR, message="not run: its gold query fails")


def known_failure(database: Path, gold: str, settings: Settings) -> Comparison | None:
    """The comparison that a gold known to fail comes to, whatever the prediction; None if it is to be run.

    Raises:
        DatabaseNotFound: the database's file is gone.
        FileNotFoundError: the file of gold results that was named is not there.
    """
    cache = chosen_gold_cache(settings.gold_cache)
    return _look_up(cache, database, gold, settings.timeout) if cache is not None else None


async def aknown_failure(database: Path, gold: str, settings: Settings) -> Comparison | None:
    """`known_failure` for an event loop: a database is read whole, in a thread, when it is first asked about."""
    cache = chosen_gold_cache(settings.gold_cache)
    if cache is None:
        return None
    return await asyncio.to_thread(_look_up, cache, database, gold, settings.timeout)


def _look_up(cache: GoldCache, database: Path, gold: str, timeout: float) -> Comparison | None:
    """The comparison from the cache's entry."""
    failed = cache.failure(database, gold, timeout)
    if failed is None:
        return None
    message = f"{failed.message} (known from {cache.path}, not run again)"
    return Comparison(Execution(failed.status, seconds=failed.seconds, message=message), NOT_RUN)
