"""How long a literal search takes in a database of many distinct text values.

    python benchmarks/literal_search.py --values 1000000

Makes a database of made-up names and addresses, builds the index once, then asks for words that are there, words that
nearly are, words that half of the literals have, and several at once. Reports the seconds of the build, the sizes, and
the milliseconds of a search (median, 99th percentile, largest), each through the guarded executor.
"""

import argparse
import hashlib
import random
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path

from verl_sql.database.executor import Executor
from verl_sql.database.literals import ensure_index, search

SYLLABLES = [a + b for a in "bcdfghklmnprstvz" for b in "aeiou"]


def word(rng: random.Random) -> str:
    """A made-up word of two to four syllables."""
    return "".join(rng.choices(SYLLABLES, k=rng.randint(2, 4)))


def make_database(path: Path, values: int, seed: int) -> list[str]:
    """A table of two text columns, together `values` distinct values; a sample of them."""
    rng = random.Random(seed)
    rows = [
        (
            f"{word(rng).capitalize()} {word(rng).capitalize()} {number}",
            f"{rng.randint(1, 999)} {word(rng).capitalize()} {rng.choice(('Street', 'Road'))}, {number:x}",
        )
        for number in range(values // 2)
    ]
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE person (name TEXT, address TEXT)")
    connection.executemany("INSERT INTO person VALUES (?, ?)", rows)
    connection.commit()
    connection.close()
    return [cell for row in rng.sample(rows, min(300, len(rows))) for cell in row]


def questions(known: list[str], seed: int) -> dict[str, list[str]]:
    """Searches of each kind."""
    rng = random.Random(seed)
    single = [cell.split()[0 if cell[0].isalpha() else 1] for cell in known]
    return {
        "a word": single,
        "the whole value": known,
        "a misspelt word": [w[:3] + rng.choice("xq") + w[3:] for w in single],
        "a common word": ["street", "Road"] * 20,
        "a common word and a rare one": [f"{w} street" for w in single],
    }


def main() -> None:
    """Build, search, report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--values", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, Executor(workers=1) as executor:
        database = Path(folder) / "people.sqlite"
        known = make_database(database, options.values, options.seed)
        before = hashlib.sha256(database.read_bytes()).hexdigest()
        began = time.perf_counter()
        index = ensure_index(database)
        built = time.perf_counter() - began
        sizes = f"database {database.stat().st_size >> 20} MiB, index {index.stat().st_size >> 20} MiB"
        print(f"{options.values} values: built in {built:.1f} s; {sizes}")
        for name, texts in questions(known, options.seed).items():
            report(executor, index, name, texts)
        assert hashlib.sha256(database.read_bytes()).hexdigest() == before, "the database file was changed"


def report(executor: Executor, index: Path, name: str, texts: list[str]) -> None:
    """Time one kind of search."""
    search(executor, index, texts[0])
    times, found = [], 0
    for text in texts:
        began = time.perf_counter()
        found += bool(search(executor, index, text))
        times.append((time.perf_counter() - began) * 1e3)
    times.sort()
    late = times[int(len(times) * 0.99)]
    print(
        f"  {name:<30} median {statistics.median(times):7.2f} ms, 99 % {late:7.2f} ms, "
        f"largest {times[-1]:7.2f} ms; found {found} of {len(texts)}"
    )


if __name__ == "__main__":
    main()
