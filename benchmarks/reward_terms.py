"""Seconds to score recorded predictions with all terms of each paper, beside naive execution of the same pairs.

    VERL_SQL_SHARED=… python benchmarks/reward_terms.py [pairs]

Naive execution is what the official evaluators do a pair: open the database, run gold and prediction under
func_timeout, compare two sets; the same without func_timeout is printed for comparison. Ours is `compute_score`
without a judge, one call a pair from one thread: extraction, guarded execution in worker processes, every term. Each
distinct query is parsed once; the parses are counted.
"""

import importlib
import json
import os
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from func_timeout import FunctionTimedOut, func_timeout

PAPERS = ("execution", "reward_sql", "reasoning_sql", "think2sql", "tabular_reasoning", "retoolsql", "progress_sql")
TEMPLATES = {
    "reasoning_sql": "<reasoning>r</reasoning><answer>{}</answer>",
    "think2sql": "<think>r</think><answer>{}</answer>",
    "tabular_reasoning": "<sql>{}</sql>",
    "retoolsql": "<think>r</think><answer>{}</answer>",
    "progress_sql": "<answer>{}</answer>",
}


def main() -> None:
    """Print one line a paper."""
    shared = Path(os.environ["VERL_SQL_SHARED"])
    root = shared / "data" / "spider_dev"
    lines = (shared / "parity" / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    pairs = [row for row in map(json.loads, lines) if row["bench"].startswith("spider")]
    pairs = pairs[: int(sys.argv[1])] if len(sys.argv) > 1 else pairs
    naive = timed(lambda: [naive_match(root, row) for row in pairs])
    distinct = {text for row in pairs for text in (row["gold"], row["pred"])}
    bare = timed(lambda: [naive_match(root, row, guarded=False) for row in pairs])
    print(
        f"{len(pairs)} pairs, {len(distinct)} distinct queries; naive {naive:.2f} s, {bare:.2f} s without func_timeout"
    )
    for paper in PAPERS:
        forget()
        seconds = timed(lambda paper=paper: score_all(paper, root, pairs))  # type: ignore[misc]
        print(f"{paper:18} {seconds:6.2f} s  {seconds / naive:5.2f} x naive  {parses()} parses")


def timed(work: Callable[[], Any]) -> float:
    """Wall-clock seconds of a call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def naive_match(root: Path, row: dict[str, Any], guarded: bool = True) -> bool:
    """Set comparison on a fresh connection under a timeout, as the BIRD evaluation does, or without one."""
    path = root / "database" / row["db_id"] / f"{row['db_id']}.sqlite"
    try:
        if not guarded:
            return run_both(path, row["pred"], row["gold"])
        return func_timeout(30, run_both, args=(path, row["pred"], row["gold"]))
    except (FunctionTimedOut, sqlite3.Error):
        return False


def run_both(path: Path, pred: str, gold: str) -> bool:
    """Run both queries and compare sets of rows."""
    connection = sqlite3.connect(path)
    try:
        cursor = connection.cursor()
        return set(cursor.execute(pred).fetchall()) == set(cursor.execute(gold).fetchall())
    finally:
        connection.close()


def score_all(paper: str, root: Path, pairs: list[dict[str, Any]]) -> list[float]:
    """Every pair through a paper's compute_score."""
    compute_score = importlib.import_module(f"verl_sql.reward_fns.{paper}").compute_score
    template = TEMPLATES.get(paper, "{}")
    return [
        compute_score("spider", template.format(row["pred"]), row["gold"], {"db_id": row["db_id"]}, db_root=str(root))[
            "score"
        ]
        for row in pairs
    ]


def forget() -> None:
    """Empty the caches of SQL text and start new workers, so that each paper pays for its own parses and executions."""
    from verl_sql.database.executor import shared_executor
    from verl_sql.rewards import components, ngrams, string_match
    from verl_sql.sqltext import clauses, items, parse, profile, tokens

    for function in (
        parse.parse_sql, tokens.sql_tokens, items.schema_items, clauses.clause_tokens, profile.profile_of,
        ngrams.ngrams, components.clause_scores, string_match.matching_ratio,
    ):  # fmt: skip
        function.cache_clear()
    shared_executor().close()


def parses() -> int:
    """How many times sqlglot ran since `forget`."""
    from verl_sql.sqltext.parse import parse_sql

    return parse_sql.cache_info().misses


if __name__ == "__main__":
    main()
