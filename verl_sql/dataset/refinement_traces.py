"""Warm-start conversations for Progress-SQL: a first SQL with a mistake, feedback as in the agent loop, the right SQL.

Mistakes come from what the data knows: a question's typical flawed chain, or its right chain with one name misspelt, so
that it does not run. Flawed chains run, and are answered with the diagnosis; failing ones are answered with the
diagnosis or with what the execution gave, half and half, so that a policy has seen both forms of feedback. Everybody
else is answered right at once.
"""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from verl_sql.database.catalog import Catalog
from verl_sql.database.execution import Execution
from verl_sql.database.executor import Executor
from verl_sql.database.feedback import ROW_LIMIT, diagnostic_feedback, execution_feedback
from verl_sql.database.introspect import read_schema
from verl_sql.dataset.parquet import SFT_SCHEMA, read_rows, write_rows
from verl_sql.schema.restrict import names_of
from verl_sql.sqltext.items import SchemaNames
from verl_sql.sqltext.scan import TokenKind, significant
from verl_sql.sqltext.turns import feedback_text


@dataclass(slots=True)
class TraceCounts:
    """Conversations written; of them with a flawed and with a failing first SQL; questions left out for want of SQL."""

    written: int = 0
    flawed: int = 0
    failing: int = 0
    without: int = 0


class _Trace(NamedTuple):
    """One conversation in the making; `first` is empty when the first SQL is the right one."""

    row: dict[str, Any]
    database: Path
    right: str
    first: str
    diagnosed: bool


def write_refinement_traces(
    source: Path,
    out: Path,
    db_root: Path,
    flawed_share: float = 0.6,
    failing_share: float = 0.1,
    seed: int = 0,
    workers: int | None = None,
) -> TraceCounts:
    """Write `out` in SFT_SCHEMA from the rows of a prepared parquet.

    Args:
        source: a parquet in RL_SCHEMA; the right SQL of a row is its gold chain, else its gold.
        out: the parquet to write.
        db_root: folder of the databases.
        flawed_share: probability that a question that knows a flawed chain begins with it.
        failing_share: probability that any other question begins with a misspelt name.
        seed: decides; the same for a question wherever it stands in the file.
        workers: processes that run the first SQL; None takes all cores.

    Raises:
        FileNotFoundError: there is no `source`.
        ValueError: a share is no probability, or no row has SQL.
        DatabaseNotFound: a database is not there.
    """
    for name, share in (("flawed_share", flawed_share), ("failing_share", failing_share)):
        if not 0 <= share <= 1:
            raise ValueError(f"{name}={share} is not between 0 and 1")
    if not source.is_file():
        raise FileNotFoundError(f"no parquet {source}; prepare one with data_prep first")
    counts, catalog = TraceCounts(), Catalog(db_root)
    drawn = (_draw(row, catalog, flawed_share, failing_share, seed) for row in read_rows(source))
    traces = [trace for trace in drawn if trace.right or _left_out(counts)]
    if not traces:
        raise ValueError(f"no row of {source} has a gold chain or a gold query")
    with Executor(workers=workers) as executor:
        begun = [(trace.database, trace.first) for trace in traces if trace.first]
        executions = iter(executor.execute_many(begun, keep_rows=ROW_LIMIT))
    write_rows(out, _rows(traces, executions, counts), SFT_SCHEMA)
    return counts


def _left_out(counts: TraceCounts) -> bool:
    """Count a question without SQL."""
    counts.without += 1
    return False


def _draw(row: dict[str, Any], catalog: Catalog, flawed_share: float, failing_share: float, seed: int) -> _Trace:
    """What the policy is to say first."""
    info = row["extra_info"]
    right = info["gold_chain"] or row["reward_model"]["ground_truth"]
    database = catalog.path(info["db_id"])
    rng = random.Random(f"refinement/{seed}/{info['question_id']}")
    flawed = json.loads(info["details"] or "{}").get("cocte_flawed", "")
    if flawed and rng.random() < flawed_share:
        return _Trace(row, database, right, flawed, True)
    first = _misspelt(right, _names(database), rng) if rng.random() < failing_share else ""
    return _Trace(row, database, right, first, rng.random() < 0.5)


def _misspelt(sql: str, names: SchemaNames, rng: random.Random) -> str:
    """The SQL with a letter left out of one bare name that the schema knows; empty when there is none to spoil."""
    known = {*names.columns, *(column for columns in names.columns.values() for column in columns)}
    places = [
        token
        for token in significant(sql)
        if token.kind is TokenKind.WORD
        and token.end - token.start > 2
        and sql[token.start : token.end].lower() in known
    ]
    if not places:
        return ""
    place = rng.choice(places)
    letter = rng.randrange(place.start + 1, place.end)
    return sql[:letter] + sql[letter + 1 :]


def _rows(traces: list[_Trace], executions: Iterator[Execution], counts: TraceCounts) -> Iterator[dict[str, Any]]:
    """The conversations; a misspelt name that happens to run is not used."""
    for trace in traces:
        execution = next(executions) if trace.first else None
        flawed = bool(trace.first) and trace.first == json.loads(trace.row["extra_info"]["details"]).get("cocte_flawed")
        turns: list[dict[str, str]] = []
        if execution is not None and (flawed or not execution.ok):
            turns = [_said(trace.first), {"role": "user", "content": feedback_text(_feedback(trace, execution))}]
            counts.flawed += flawed
            counts.failing += not flawed
        counts.written += 1
        yield {
            "messages": [*trace.row["prompt"], *turns, _said(trace.right)],
            "extra_info": trace.row["extra_info"],
        }


def _feedback(trace: _Trace, execution: Execution) -> str:
    """What the policy reads after its first SQL."""
    if not trace.diagnosed:
        return execution_feedback(execution)
    gold, chain = trace.row["reward_model"]["ground_truth"], trace.row["extra_info"]["gold_chain"]
    return diagnostic_feedback(trace.first, [gold, chain] if chain else [gold], execution, _names(trace.database))


@cache
def _names(database: Path) -> SchemaNames:
    """Tables and columns of a database, read once."""
    return names_of(read_schema(database))


def _said(text: str) -> dict[str, str]:
    """A turn of the policy."""
    return {"role": "assistant", "content": text}
