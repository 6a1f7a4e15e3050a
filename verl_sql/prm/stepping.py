"""Running a chain step by step: step j's result is that of `WITH c1 … cj SELECT * FROM cj` (Reward-SQL §4.2)."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

from verl_sql.database.execution import Execution
from verl_sql.database.executor import Executor
from verl_sql.prm.rendering import ROW_LIMIT
from verl_sql.sqltext.chain import Chain, prefix_sql


def step_queries(chain: Chain, score_final: bool = False) -> list[str]:
    """What is run for each step, and the whole chain where its final query is scored too."""
    queries = [prefix_sql(chain, step.index) for step in chain.steps]
    return [*queries, chain.text] if score_final and chain.final_sql else queries


def execute_steps(
    executor: Executor,
    database: Path,
    chain: Chain,
    *,
    timeout: float | None = None,
    row_limit: int = ROW_LIMIT,
    score_final: bool = False,
) -> list[Execution]:
    """The results of a chain's steps, in order, with their first rows.

    Args:
        executor: runs the queries, several at once.
        database: SQLite file.
        chain: a split query; of one that was cut the whole steps are run.
        timeout: seconds a query may run; None takes the executor's.
        row_limit: rows to keep of each result.
        score_final: run the whole query as a further one.

    Raises:
        ExecutorError: the pool is at fault. A database at fault sets `Execution.data_fault`.
    """
    items = [(database, chain)]
    return execute_chains(executor, items, timeout=timeout, row_limit=row_limit, score_final=score_final)[0]


async def aexecute_steps(
    executor: Executor,
    database: Path,
    chain: Chain,
    *,
    timeout: float | None = None,
    row_limit: int = ROW_LIMIT,
    score_final: bool = False,
) -> list[Execution]:
    """`execute_steps` for an event loop: all steps at once, waited for without a thread.

    Raises:
        DatabaseNotFound, DatabaseUnusable: the database is at fault.
        ExecutorError: the pool is.
    """
    queries = step_queries(chain, score_final)
    runs = (executor.aexecute(database, sql, timeout=timeout, keep_rows=row_limit) for sql in queries)
    return list(await asyncio.gather(*runs))


def execute_chains(
    executor: Executor,
    items: Sequence[tuple[Path, Chain]],
    *,
    timeout: float | None = None,
    row_limit: int = ROW_LIMIT,
    score_final: bool = False,
) -> list[list[Execution]]:
    """`execute_steps` for many chains: every different prefix on a database is run once, all of them in parallel.

    Returns:
        For each item, in order, the results of its steps.
    """
    queries = [[(database, sql) for sql in step_queries(chain, score_final)] for database, chain in items]
    distinct = list(dict.fromkeys(_flat(queries)))
    results = dict(zip(distinct, executor.execute_many(distinct, timeout=timeout, keep_rows=row_limit), strict=True))
    return [[results[query] for query in own] for own in queries]


def _flat(queries: Sequence[Sequence[tuple[Path, str]]]) -> Iterator[tuple[Path, str]]:
    """All queries of all items."""
    return (query for own in queries for query in own)
