"""What each gold gave when data preparation ran it: `golds.jsonl`, for the reward (see `database.gold_cache`).

Kept apart from the parquet and the report: the seconds in it are the only bytes of a build that vary between two runs.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from verl_sql.database.execution import Execution
from verl_sql.database.faults import DatabaseNotFound
from verl_sql.database.gold_cache import Contents, GoldResult, gold_line
from verl_sql.dataset.filters.volatile import volatile_findings

GOLDS = "golds.jsonl"


class GoldRecord:
    """Collects the results of golds as lines of a gold cache, until they are taken.

    Args:
        allowed: seconds each gold was allowed.
    """

    def __init__(self, allowed: float) -> None:
        """No gold yet."""
        self.allowed = allowed
        self._contents = Contents()
        self._lines: list[str] = []

    def note(self, database: Path, sql: str, execution: Execution) -> None:
        """Note what a gold gave, run with `digest=True`.

        Passed over: what is the database's fault, and golds that read the clock or random numbers, whose next result
        may be another.
        """
        if execution.data_fault or volatile_findings(sql):
            return
        try:
            content = self._contents.of(database)
        except DatabaseNotFound:
            return
        self._lines.append(gold_line(database.stem, content, sql, GoldResult.of(execution, self.allowed)))

    def take(self) -> str:
        """The lines noted since the last call."""
        lines, self._lines = self._lines, []
        return "".join(lines)


def merge_golds(parts: Iterable[Path], target: Path) -> None:
    """Write the lines of many files into one, each gold of a database once; whole or not at all."""
    partial = target.with_name(f".{target.name}.partial")
    with partial.open("w", encoding="utf-8") as file:
        file.writelines(_distinct(line for part in parts for line in part.open(encoding="utf-8")))
    os.replace(partial, target)


def _distinct(lines: Iterable[str]) -> Iterator[str]:
    """The first line of each (content, SQL); 16 bytes are remembered of each."""
    seen: set[bytes] = set()
    for line in lines:
        entry = json.loads(line)
        key = hashlib.blake2b(f"{entry['content']} {entry['sql']}".encode("utf-8", "surrogatepass"), digest_size=16)
        if key.digest() not in seen:
            seen.add(key.digest())
            yield line
