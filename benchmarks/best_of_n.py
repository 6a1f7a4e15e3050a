"""Executing and rendering the steps of a question's candidates: our way against one after another, interleaved.

    python benchmarks/best_of_n.py outputs/…/candidates.jsonl --db-root databases [--n 32] [--questions 40] [--rounds 5]

Input: JSON lines with `db_id`, a question (`key` or `question_id`) and a query (`sql` or `pred`): the candidates.jsonl
of `verl-sql infer`, or any file of predictions. The serial way is the one that took 7.05 of 12.31 s a question in
Reward-SQL (Figure 11): every step of every candidate on a new connection, one after another. Ours runs each different
prefix once, all at the same time, in the executor's workers, which remember nothing between the rounds here: once with
one question at a time, as a service does, and once with all questions in one call, as `verl-sql infer` does with
blocks of 64. All ways give the same texts.
"""

import argparse
import json
import sqlite3
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from verl_sql.database.catalog import Catalog
from verl_sql.database.execution import Execution, Status
from verl_sql.database.executor import Executor
from verl_sql.database.limits import Limits
from verl_sql.prm.rendering import ROW_LIMIT, render_chain
from verl_sql.prm.stepping import execute_chains
from verl_sql.sqltext.chain import prefix_sql, split_chain


@dataclass(frozen=True, slots=True)
class Group:
    """One question: its database and the queries of its candidates, as many as there are candidates."""

    database: Path
    queries: tuple[str, ...]


def read_groups(path: Path, catalog: Catalog, n: int, questions: int) -> list[Group]:
    """The questions with at least n candidates, the first n of each; greedy answers are left out."""
    found: dict[tuple[str, str], list[str]] = {}
    with path.open(encoding="utf-8") as lines:
        for row in map(json.loads, lines):
            query = row.get("sql") or row.get("pred")
            if query and row.get("sample") != -1:
                found.setdefault((row["db_id"], str(row.get("key", row.get("question_id")))), []).append(query)
    whole = [(db_id, queries) for (db_id, _), queries in found.items() if len(queries) >= n]
    return [Group(catalog.path(db_id), tuple(queries[:n])) for db_id, queries in whole[:questions]]


def serial(group: Group) -> list[str]:
    """Each step of each candidate on a connection of its own."""
    texts = []
    for query in group.queries:
        chain = split_chain(query)
        results = [run_alone(group.database, prefix_sql(chain, step.index)) for step in chain.steps]
        texts.append(render_chain("", chain, results).text)
    return texts


def run_alone(database: Path, sql: str) -> Execution:
    """One query as an evaluation script runs it: open, execute, fetch all, close."""
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    try:
        cursor = connection.execute(sql)
        rows = cursor.fetchall()
        columns = tuple(column[0] for column in cursor.description or ())
        return Execution(Status.OK, columns, tuple(rows[:ROW_LIMIT]), len(rows))
    except sqlite3.Error as error:
        return Execution(Status.ERROR, message=str(error))
    finally:
        connection.close()


def ours(executor: Executor, groups: Sequence[Group]) -> list[list[str]]:
    """As `verl_sql.evaluation.judging` does it: different chains once, different prefixes once, in parallel."""
    chains = [{query: split_chain(query) for query in dict.fromkeys(group.queries)} for group in groups]
    items = [(group.database, chain) for group, known in zip(groups, chains, strict=True) for chain in known.values()]
    results = iter(execute_chains(executor, items))
    rendered = [{query: render_chain("", chain, next(results)).text for query, chain in own.items()} for own in chains]
    return [[known[query] for query in group.queries] for group, known in zip(groups, rendered, strict=True)]


def distinct_share(groups: Sequence[Group]) -> tuple[int, int]:
    """Different prefixes within their questions, and all of them."""
    distinct = total = 0
    for group in groups:
        chains = map(split_chain, group.queries)
        prefixes = [prefix_sql(chain, step.index) for chain in chains for step in chain.steps]
        distinct, total = distinct + len(set(prefixes)), total + len(prefixes)
    return distinct, total


def timed(way: Callable[[], list[list[str]]]) -> tuple[float, list[list[str]]]:
    """Seconds for all questions, and the texts."""
    since = time.perf_counter()
    texts = way()
    return time.perf_counter() - since, texts


def measure(executor: Executor, groups: Sequence[Group]) -> tuple[float, float, float]:
    """One round: seconds of the serial way, of ours question by question, and of ours with all questions at once.

    Raises:
        SystemExit: the texts differ.
    """
    one, expected = timed(lambda: [serial(group) for group in groups])
    single, mine = timed(lambda: [ours(executor, [group])[0] for group in groups])
    bulk, all_mine = timed(lambda: ours(executor, groups))
    if not expected == mine == all_mine:
        raise SystemExit("the ways do not give the same texts")
    return one, single, bulk


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("candidates", type=Path)
    parser.add_argument("--db-root", type=Path, required=True)
    parser.add_argument("--n", type=int, default=32)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--workers", type=int, default=None)
    options = parser.parse_args()
    groups = read_groups(options.candidates, Catalog(options.db_root), options.n, options.questions)
    if not groups:
        raise SystemExit(f"no question in {options.candidates} has {options.n} candidates with SQL")
    with Executor(options.workers, limits=Limits(remembered_mb=0)) as executor:
        for group in groups:
            executor.execute_many([(group.database, "SELECT 1")] * executor.workers)
        rounds = []
        for _ in range(options.rounds):
            one, single, bulk = measure(executor, groups)
            rounds.append((one / single, one / bulk))
            shown = ", ".join(f"{1e3 * seconds / len(groups):.2f}" for seconds in (one, single, bulk))
            print(
                f"serial, ours one by one, ours at once: {shown} ms a question; {one / single:.2f}, {one / bulk:.2f} x"
            )
    distinct, total = distinct_share(groups)
    print(f"{len(groups)} questions of {options.n} candidates, {total / len(groups):.1f} steps a question,"
          f" {100 * distinct / total:.1f} % of them different prefixes; {executor.workers} workers")  # fmt: skip
    single, bulk = (statistics.median(ratios) for ratios in zip(*rounds, strict=True))
    print(f"median: {single:.2f} times as fast one by one, {bulk:.2f} times with all questions at once")


if __name__ == "__main__":
    main()
