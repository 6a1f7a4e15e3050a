r"""How fast pairs of gold and predicted SQL are scored, beside the usual way and beside the floor, in one run.

    python benchmarks/score_pairs.py --pairs pairs.jsonl --db-root databases [--rounds 3] [--workers 1] \
        [--growth workers group database]

Paths, each scoring the same pairs with the same number of processes, in turn, `--rounds` times over:
  naive          what most projects do: for each pair open the database, run both queries under func_timeout, fetch
                 everything, compare as sets
  floor          one connection a database, each distinct query once, compare as sets: no guard, no deadline
  bulk           Executor.compare_many with bird_set: guarded, isolated, with deadlines
  compare        Executor.compare with bird_set, one call a pair, from 16 threads
  compute_score  the reward function of reward_fns/execution.py, one call a pair, from 16 threads
  test_suite     Executor.compare_many with test_suite
CPU seconds are those of this process and of every process it started (their start included). The rate that counts is
pairs per CPU-second: it does not depend on what else the machine does. The median round is shown.
"""

import argparse
import json
import multiprocessing
import random
import resource
import sqlite3
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from func_timeout import FunctionTimedOut, func_timeout
from verl_sql.reward_fns.execution import compute_score

from verl_sql.database.catalog import Catalog, DatabaseNotFound
from verl_sql.database.executor import Executor, Pair, shared_executor

TIMEOUT = 60.0
THREADS = 16
TARGETS = {  # ratios the project holds itself to: (path, reference, at least)
    "bulk / floor": ("bulk", "floor", 0.6),
    "compute_score / naive": ("compute_score", "naive", 2.0),
    # Ten times the public test suite implementation, which does 400 pairs a CPU-second where the naive path does 2,000.
    "test_suite / naive": ("test_suite", "naive", 2.0),
}

Scorer = Callable[[Sequence[Pair], int], int]


class Run(NamedTuple):
    """One measurement: pairs scored, matches found, wall-clock and CPU seconds."""

    pairs: int
    matches: int
    wall: float
    cpu: float

    @property
    def rate(self) -> float:
        """Pairs per CPU-second."""
        return self.pairs / self.cpu


# --- the paths ---


def naive(pairs: Sequence[Pair], workers: int) -> int:
    """The usual way; number of matches."""
    return _in_processes(naive_share, pairs, workers)


def naive_share(pairs: Sequence[Pair]) -> int:
    """One process's share of the naive path."""
    matches = 0
    for pair in pairs:
        try:
            matches += func_timeout(TIMEOUT, _open_and_compare, args=(str(pair.database), pair.gold, pair.pred))
        except (FunctionTimedOut, Exception):
            continue
    return matches


def _open_and_compare(database: str, gold: str, pred: str) -> bool:
    connection = sqlite3.connect(database)
    try:
        cursor = connection.cursor()
        cursor.execute(pred)
        pred_rows = cursor.fetchall()
        cursor.execute(gold)
        return set(pred_rows) == set(cursor.fetchall())
    finally:
        connection.close()


def floor(pairs: Sequence[Pair], workers: int) -> int:
    """As little as can be done; number of matches."""
    return _in_processes(floor_share, pairs, workers)


def floor_share(pairs: Sequence[Pair]) -> int:
    """One process's share of the floor."""
    connections: dict[Path, sqlite3.Connection] = {}
    results: dict[tuple[Path, str], set[tuple[object, ...]] | None] = {}

    def result(database: Path, sql: str) -> set[tuple[object, ...]] | None:
        if (database, sql) not in results:
            if database not in connections:
                connections[database] = sqlite3.connect(database)
            try:
                results[database, sql] = set(connections[database].execute(sql).fetchall())
            except sqlite3.Error:
                results[database, sql] = None
        return results[database, sql]

    matches = 0
    for pair in pairs:
        gold, pred = result(pair.database, pair.gold), result(pair.database, pair.pred)
        matches += gold is not None and gold == pred
    return matches


def bulk(pairs: Sequence[Pair], workers: int) -> int:
    """compare_many with bird_set; number of matches."""
    return _compare_many(pairs, workers, "bird_set")


def test_suite(pairs: Sequence[Pair], workers: int) -> int:
    """compare_many with test_suite; number of matches."""
    return _compare_many(pairs, workers, "test_suite")


def _compare_many(pairs: Sequence[Pair], workers: int, name: str) -> int:
    with Executor(workers=workers, timeout=TIMEOUT) as executor:
        return sum(comparison.values[name] == 1.0 for comparison in executor.compare_many(pairs, comparators=(name,)))


def compare(pairs: Sequence[Pair], workers: int) -> int:
    """Executor.compare from many threads; number of matches."""
    with Executor(workers=workers, timeout=TIMEOUT) as executor:

        def matches(pair: Pair) -> bool:
            return executor.compare(pair.database, pair.gold, pair.pred).values["bird_set"] == 1.0

        return _in_threads(matches, pairs)


def _in_threads(is_match: Callable[[Pair], bool], pairs: Sequence[Pair]) -> int:
    """Call from many threads, each with every sixteenth pair, so that handing pairs to threads costs nothing."""
    with ThreadPoolExecutor(THREADS) as threads:
        return sum(threads.map(lambda first: sum(map(is_match, pairs[first::THREADS])), range(THREADS)))


def single_calls(pairs: Sequence[Pair], workers: int) -> int:
    """compute_score from many threads; number of matches."""

    def score(pair: Pair) -> bool:
        info = {"db_id": pair.database.stem, "db_path": str(pair.database)}
        completion = f"```sql\n{pair.pred}\n```"
        return bool(compute_score("benchmark", completion, pair.gold, info, timeout=TIMEOUT, workers=workers)["acc"])

    executor = shared_executor(workers=workers, timeout=TIMEOUT)
    try:
        return _in_threads(score, pairs)
    finally:
        executor.close()


PATHS: dict[str, Scorer] = {
    "naive": naive,
    "floor": floor,
    "bulk": bulk,
    "compare": compare,
    "compute_score": single_calls,
    "test_suite": test_suite,
}


def _in_processes(share: Callable[[Sequence[Pair]], int], pairs: Sequence[Pair], workers: int) -> int:
    """Run a share in each of `workers` forked processes (which start at no cost); pairs of one gold stay together."""
    ordered = sorted(pairs, key=lambda pair: (str(pair.database), pair.gold))
    size = -(-len(ordered) // workers)
    shares = [ordered[i : i + size] for i in range(0, len(ordered), size)]
    with multiprocessing.get_context("fork").Pool(len(shares)) as pool:
        total = sum(pool.map(share, shares, chunksize=1))
        pool.close()
        pool.join()
    return total


# --- measuring ---


def measure(path: Scorer, pairs: Sequence[Pair], workers: int) -> Run:
    """One path over all pairs."""
    cpu, start = _cpu_seconds(), time.perf_counter()
    matches = path(pairs, workers)
    return Run(len(pairs), matches, time.perf_counter() - start, _cpu_seconds() - cpu)


def _cpu_seconds() -> float:
    """User and system time of this process and of all children that ended."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def compare_paths(names: Sequence[str], pairs: Sequence[Pair], workers: int, rounds: int) -> dict[str, Run]:
    """The paths in turn, `rounds` times; the median run of each, by CPU time."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for _ in range(rounds):
        for name in names:
            runs[name].append(measure(PATHS[name], pairs, workers))
    return {name: sorted(group, key=lambda run: run.cpu)[len(group) // 2] for name, group in runs.items()}


def show(title: str, results: dict[str, Run]) -> None:
    """One table of paths."""
    print(f"\n{title}")
    print(f"  {'path':<15}{'pairs':>7}{'matches':>9}{'wall s':>9}{'CPU s':>8}{'pairs/s':>9}{'pairs/CPU-s':>13}")
    for name, run in results.items():
        speed = f"{run.pairs / run.wall:>9.0f}{run.rate:>13.0f}"
        print(f"  {name:<15}{run.pairs:>7}{run.matches:>9}{run.wall:>9.2f}{run.cpu:>8.2f}{speed}", flush=True)


def show_ratios(results: dict[str, Run]) -> None:
    """Ratios of pairs per CPU-second, beside what is asked for."""
    for label, (path, reference, target) in TARGETS.items():
        if path in results and reference in results:
            ratio = results[path].rate / results[reference].rate
            print(f"  {label:<24}{ratio:>6.2f}  (asked for: {target:g})  {'ok' if ratio >= target else 'MISSED'}")


# --- growth ---


def grow_workers(pairs: Sequence[Pair], rounds: int = 5) -> None:
    """Each path with 1, 2, 4, … processes, up to the number of CPUs, but at least 2; wall-clock time against one.

    The best rounds are those in which the machine had the most CPUs to give; the naive path's processes share nothing,
    so its ratio is what the machine itself allows.
    """
    counts = [2**k for k in range(max(2, multiprocessing.cpu_count()).bit_length())]
    walls: dict[tuple[str, int], list[float]] = defaultdict(list)
    for _ in range(rounds):
        for name in ("naive", "floor", "bulk"):
            for workers in counts:
                walls[name, workers].append(measure(PATHS[name], pairs, workers).wall)
    print(f"\nprocesses, {rounds} rounds: times as fast as one, best rounds (median of the rounds' ratios)")
    for name, workers in walls:
        one, many = walls[name, 1], walls[name, workers]
        median = statistics.median(a / b for a, b in zip(one, many, strict=True))
        print(f"  {name:<15}{workers:>7}{min(one) / min(many):>9.2f} ({median:.2f})", flush=True)


def grow_group(pairs: Sequence[Pair], questions: int = 100) -> None:
    """Groups of n predictions for one gold, all of different text, as rollouts of one prompt are."""
    by_gold: dict[tuple[Path, str], list[str]] = defaultdict(list)
    for pair in pairs:
        by_gold[pair.database, pair.gold].append(pair.pred)
    chosen = random.Random(0).sample(sorted(by_gold, key=str), min(questions, len(by_gold)))
    for n in (1, 4, 16, 32):
        groups = [
            Pair(database, gold, preds[i % len(preds)] + " " * (i // len(preds)))
            for database, gold in chosen
            for preds in [by_gold[database, gold]]
            for i in range(n)
        ]
        show(f"group size n = {n}, {len(chosen)} golds", compare_paths(("naive", "floor", "bulk"), groups, 1, 1))


def grow_database(_: Sequence[Pair], n_pairs: int = 30) -> None:
    """One table of growing size; each query reads all of it. The pairs given are not used."""
    with tempfile.TemporaryDirectory() as folder:
        for n_rows in (100, 10_000, 300_000):
            database = Path(folder) / f"rows_{n_rows}.sqlite"
            _make_database(database, n_rows)
            golds = [f"SELECT grp, count(*), sum(v) FROM t WHERE v > {k} GROUP BY grp" for k in range(n_pairs // 3)]
            pairs = [Pair(database, gold, f"{gold} ORDER BY {order}") for gold in golds for order in (1, 2, 3)]
            show(f"database of {n_rows} rows", compare_paths(("naive", "floor", "bulk"), pairs, 1, 1))


def _make_database(path: Path, n_rows: int) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, grp INTEGER, v INTEGER)")
    connection.executemany("INSERT INTO t(grp, v) VALUES (?, ?)", ((i % 97, i * 7919 % 1009) for i in range(n_rows)))
    connection.commit()
    connection.close()


GROWTH: dict[str, Callable[[Sequence[Pair]], None]] = {
    "workers": grow_workers,
    "group": grow_group,
    "database": grow_database,
}


# --- the command ---


def read_pairs(path: Path, root: Path, limit: int | None) -> list[Pair]:
    """The pairs whose databases the root has; `limit` keeps whole questions, chosen by a fixed seed."""
    catalog = Catalog(root)
    groups: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        try:
            pair = Pair(catalog.path(record["db_id"]), record["gold"], record["pred"])
        except DatabaseNotFound:
            continue
        groups[record["db_id"], record["gold"]].append(pair)
    keys = sorted(groups)
    if limit is not None:
        random.Random(0).shuffle(keys)
        keys = keys[: round(limit / statistics.mean(map(len, groups.values())))]
    return [pair for key in keys for pair in groups[key]]


def main() -> None:
    """Read, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="JSON lines with db_id, gold, pred")
    parser.add_argument("--db-root", type=Path, required=True, help="root of the databases")
    parser.add_argument("--limit", type=int, help="about so many pairs (whole questions)")
    parser.add_argument("--rounds", type=int, default=3, help="interleaved rounds of the paths; 0 for growth only")
    parser.add_argument("--workers", type=int, default=1, help="processes of every path")
    parser.add_argument("--growth", nargs="*", choices=list(GROWTH), default=[], help="what else to grow, one by one")
    options = parser.parse_args()
    pairs = read_pairs(options.pairs, options.db_root, options.limit)
    if options.rounds:
        results = compare_paths(list(PATHS), pairs, options.workers, options.rounds)
        show(f"{len(pairs)} pairs, {options.workers} process(es), median of {options.rounds} rounds", results)
        show_ratios(results)
    for name in options.growth:
        GROWTH[name](pairs)


if __name__ == "__main__":
    main()
