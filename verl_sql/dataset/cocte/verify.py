"""Convert gold queries and verify each chain by execution: equal to the gold as set, as bag and in order, every prefix
running, and the text coming apart into the steps it was made of.

Together with the test suite's removal of DISTINCT this is the only place where rewritten SQL is run; the guarded
executor runs it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from verl_sql.database.executor import Executor, Pair
from verl_sql.database.introspect import DatabaseSchema, read_schema
from verl_sql.dataset.cocte.convert import Candidate, candidates
from verl_sql.dataset.cocte.reasons import CONVERTED, ChainOutcome, Unconvertible
from verl_sql.sqltext.chain import prefix_sql, split_chain

COMPARATORS = ("bird_set", "bag", "ordered")
BLOCK = 256
"""Queries converted at a time."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """What became of one gold query.

    Attributes:
        outcome: how it ended.
        chain: the chain, or nothing.
        steps: its steps as the splitter counts them, 0 without a chain.
        stages: stages of the query, see `stages.count_stages`; 0 where they could not be counted.
        depth: how far the rules took it apart, or nothing.
        detail: why there is no chain.
        empty: the gold's result is empty, so that equality says little.
    """

    outcome: ChainOutcome
    chain: str = ""
    steps: int = 0
    stages: int = 0
    depth: str = ""
    detail: str = ""
    empty: bool = False

    @property
    def converted(self) -> bool:
        """Whether there is a chain."""
        return self.outcome in CONVERTED

    def as_dict(self) -> dict[str, Any]:
        """Plain values, which `Conversion(**values)` reads back."""
        return asdict(self) | {"outcome": str(self.outcome)}


def conversion_from(values: dict[str, Any]) -> Conversion:
    """A conversion from `as_dict`'s values."""
    return Conversion(**values | {"outcome": ChainOutcome(values["outcome"])})


@dataclass(slots=True)
class _Open:
    """A query on its way: what is left to try, and the last reason."""

    database: Path
    sql: str
    rest: Iterator[Candidate]
    current: Candidate | None = None
    failed: ChainOutcome = ChainOutcome.DIFFERS
    detail: str = ""
    result: Conversion | None = field(default=None)


def convert_all(
    queries: Iterable[tuple[Path, str]], executor: Executor, timeout: float | None = None
) -> Iterator[Conversion]:
    """Convert gold queries by rule, in their order; memory is bounded by a block of them.

    Args:
        queries: database file and gold SQL.
        executor: runs golds and chains.
        timeout: seconds each may run; None takes the executor's.
    """
    source = iter(queries)
    while block := list(islice(source, BLOCK)):
        yield from _convert_block([_opened(database, sql) for database, sql in block], executor, timeout)


def verify_chains(
    chains: Sequence[tuple[Path, str, str]], executor: Executor, timeout: float | None = None
) -> list[Conversion]:
    """Verify chains that somebody else wrote: (database, gold, chain) each; `outcome` says how each fared."""
    opened = []
    for database, gold, text in chains:
        split = split_chain(text)
        one = _Open(database, gold, iter(()), _written(text, len(split.steps) if split.has_ctes else 0))
        if not split.complete:
            one.result = Conversion(ChainOutcome.NOT_SPLIT, detail="the text does not come apart into whole steps")
        opened.append(one)
    waiting = [one for one in opened if one.result is None]
    _compare(waiting, executor, timeout)
    _run_prefixes([one for one in waiting if one.result and one.result.converted], executor, timeout)
    return [one.result or Conversion(one.failed, detail=one.detail) for one in opened]


def _written(text: str, steps: int) -> Candidate:
    """A chain that no rule made."""
    return Candidate(text, steps, None, 0)


def _opened(database: Path, sql: str) -> _Open:
    """A query with its candidates, the first one at hand."""
    try:
        state = database.stat()
        schema = _schema(database, state.st_mtime_ns, state.st_size)
        one = _Open(database, sql, candidates(sql, schema))
        one.current = next(one.rest)
        return one
    except Unconvertible as error:
        return _Open(database, sql, iter(()), result=Conversion(error.outcome, detail=str(error)))
    except OSError as error:
        return _Open(database, sql, iter(()), result=Conversion(ChainOutcome.NO_DATABASE, detail=str(error)))


@lru_cache(maxsize=256)
def _schema(database: Path, mtime_ns: int, size: int) -> DatabaseSchema:
    """The schema of a file; time and size are part of the key only."""
    return read_schema(database)


def _convert_block(block: list[_Open], executor: Executor, timeout: float | None) -> list[Conversion]:
    """Try candidate after candidate until every query has a chain or nothing left to try."""
    while waiting := [one for one in block if one.result is None]:
        _compare(waiting, executor, timeout)
        _run_prefixes([one for one in waiting if one.result and one.result.converted], executor, timeout)
        for one in waiting:
            if one.result is None:
                _advance(one)
    return [one.result or Conversion(one.failed, detail=one.detail) for one in block]


def _advance(one: _Open) -> None:
    """Take the next candidate, or give up."""
    stages = one.current.stages if one.current else 0
    try:
        one.current = next(one.rest, None)
    except Unconvertible as error:
        one.current, one.detail = None, str(error)
    if one.current is None:
        one.result = Conversion(one.failed, stages=stages, detail=one.detail)


def _compare(waiting: list[_Open], executor: Executor, timeout: float | None) -> None:
    """Run golds and current candidates; equal ones get a result, as do those whose gold fails."""
    tried = [one for one in waiting if one.current is not None]
    pairs = [Pair(one.database, one.sql, one.current.chain) for one in tried if one.current]
    for one, found in zip(tried, executor.compare_many(pairs, comparators=COMPARATORS, timeout=timeout), strict=True):
        if not found.gold.ok:
            outcome = ChainOutcome.NO_DATABASE if found.gold.data_fault else ChainOutcome.GOLD_FAILS
            one.result = Conversion(outcome, detail=found.gold.message)
        elif all(found.values[name] == 1.0 for name in COMPARATORS):
            one.result = _accepted(one.current, found.gold.is_empty)
        else:
            one.failed, one.detail = ChainOutcome.DIFFERS, found.pred.message or "the results differ"


def _accepted(candidate: Candidate | None, empty: bool) -> Conversion | None:
    """The conversion of a candidate that equals its gold; None if its text does not come apart as it was made."""
    if candidate is None:
        return None
    split = split_chain(candidate.chain)
    if not split.complete or (len(split.steps) if split.has_ctes else 0) != candidate.steps:
        return Conversion(ChainOutcome.NOT_SPLIT, detail="the splitter sees other steps")
    outcome = ChainOutcome.CHAIN if split.has_ctes else ChainOutcome.SINGLE
    depth = str(candidate.depth or "")
    return Conversion(outcome, candidate.chain, len(split.steps), candidate.stages, depth, empty=empty)


def _run_prefixes(equal: list[_Open], executor: Executor, timeout: float | None) -> None:
    """Take the result back from every chain with a prefix that does not run."""
    requests, owners = [], []
    for one in equal:
        chain = split_chain(one.result.chain if one.result else "")
        for step in chain.steps if chain.has_ctes else ():
            requests.append((one.database, prefix_sql(chain, step.index)))
            owners.append((one, step.name))
    for (one, name), found in zip(owners, executor.execute_many(requests, timeout=timeout), strict=True):
        if not found.ok:
            one.result, one.failed = None, ChainOutcome.PREFIX_FAILS
            one.detail = f"step {name}: {found.message or found.status}"
