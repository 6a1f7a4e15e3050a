"""What data preparation costs beside what cannot be saved: reading the databases once.

    python benchmarks/prepare_dataset.py --source SPIDER_DIR --copies 8

Prints, in seconds of CPU: the bare PRAGMAs and value queries of all databases, M-Schema of all of them, the prompts of
all dev questions, and whole builds of the questions `copies` times over by one process and by several, apart by what
stays in this process and what the others do.
"""

import argparse
import resource
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from verl_sql.database.introspect import open_for_reading, quote_name
from verl_sql.dataset.build import Dataset, build_dataset
from verl_sql.dataset.example import Example
from verl_sql.dataset.prompting import PromptTemplate
from verl_sql.dataset.readers.spider import question_files, read_spider
from verl_sql.dataset.settings import Settings
from verl_sql.dataset.spreading.spread import all_cores
from verl_sql.schema.render import render_schema
from verl_sql.schema.source import SchemaSource


def bare(file: Path) -> None:
    """The PRAGMAs and value queries that any text with examples needs."""
    with open_for_reading(file) as connection:
        for (table,) in _tables(connection):
            name = quote_name(table)
            columns = connection.execute(f"PRAGMA table_info({name})").fetchall()
            connection.execute(f"PRAGMA foreign_key_list({name})").fetchall()
            for column in (quote_name(c[1]) for c in columns):
                query = f"SELECT DISTINCT {column} FROM {name} WHERE {column} IS NOT NULL AND {column} <> '' LIMIT 5"
                connection.execute(query).fetchall()


def _tables(connection: sqlite3.Connection) -> list[tuple[str]]:
    """Names of the tables."""
    wanted = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    return connection.execute(wanted).fetchall()


def prompts(source: Path, examples: list[Example]) -> None:
    """The prompts of all questions, with nothing remembered from earlier (another number of examples each time)."""
    template, texts = PromptTemplate("reward_sql"), SchemaSource(examples=next(_FRESH))
    for e in examples:
        file = source / f"database/{e.db_id}/{e.db_id}.sqlite"
        template.messages(e, texts.text(file, e.db_id, e.question, e.evidence, e.gold_sql))


_FRESH = iter([3, 2, 4, 1, 5])


def best(work: Callable[[], None], rounds: int) -> float:
    """The least CPU time of some rounds."""
    found = []
    for _ in range(rounds):
        began = time.process_time()
        work()
        found.append(time.process_time() - began)
    return min(found)


def build(source: Path, copies: int, workers: int) -> tuple[float, float]:
    """CPU seconds of this process and of its children for one build."""

    def read() -> Iterator[Example]:
        for number in range(copies):
            for example in read_spider(source, "dev"):
                yield replace(example, question_id=f"{number}-{example.question_id}")

    dataset = Dataset("spider", "Repeated.", {"dev": read}, question_files(source, "dev"), source)
    before = _used()
    with tempfile.TemporaryDirectory() as out:
        build_dataset(dataset, Settings(), out, workers)
    after = _used()
    return after[0] - before[0], after[1] - before[1]


def _used() -> tuple[float, float]:
    """CPU seconds so far: of this process, and of children that have ended."""
    here, there = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return here.ru_utime + here.ru_stime, there.ru_utime + there.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="the cost of data preparation")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--copies", type=int, default=8)
    given = parser.parse_args()
    files = sorted(given.source.glob("database/*/*.sqlite"))
    examples = list(read_spider(given.source, "dev"))
    floor = best(lambda: [bare(file) for file in files] and None, 5)
    schema = best(lambda: [render_schema(file) for file in files] and None, 5)
    asked = best(lambda: prompts(given.source, examples), 3)
    print(f"bare queries of {len(files)} databases  {floor:.4f} s")
    print(f"M-Schema                        {schema:.4f} s  {schema / floor:.2f} times the bare queries")
    print(f"prompts of {len(examples)} questions        {asked:.4f} s  {asked / floor:.2f} times the bare queries")
    for workers in (1, max(2, all_cores())):
        here, there = build(given.source, given.copies, workers)
        print(f"build, {workers} processes              {here:.1f} s here, {there:.1f} s in other processes")


if __name__ == "__main__":
    main()
