"""Draws the sample's questions, keeps train, dev and test apart, and writes everything in BIRD's layout.

Layout: `<out>/<split>/<split>.json` for the splits cold_start and train (for RL), dev and test, all about the eight
databases in `train/train_databases`, and unseen, about two databases in `unseen/unseen_databases`. No chain of train
or cold_start is in dev or test.
"""

import hashlib
import json
import random
import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verl_sql.dataset.sample.databases import draw_rows, write_database
from verl_sql.dataset.sample.declarations import SEEN, UNSEEN, Database
from verl_sql.dataset.sample.draw import Draw, Drawn, NoSuchColumnError
from verl_sql.dataset.sample.templates import TEMPLATES, Exposure

_SAME_CHAIN_LIMIT = 2
_MAX_DRAWS_A_QUESTION = 200
_MAX_BARREN = 40  # templates in a row that gave nothing: the databases have no more to ask


@dataclass(frozen=True, slots=True)
class SampleSizes:
    """How many questions each split gets."""

    cold_start: int = 6000
    train: int = 1500
    dev: int = 300
    test: int = 600
    unseen: int = 200


def write_sample(out: Path, seed: int = 0, sizes: SampleSizes | None = None) -> dict[str, int]:
    """Build databases and questions under `out`; the same seed and sizes give the same files.

    Returns:
        The number of questions written, by split.

    Raises:
        RuntimeError: The templates cannot give as many distinct questions as `sizes` asks for.
    """
    sizes = sizes or SampleSizes()
    for split, databases in (("train", SEEN), ("unseen", UNSEEN)):
        for database in databases:
            write_database(database, draw_rows(database, seed), out / split / f"{split}_databases")
    questions = _Sampler(out, seed).draw_all(sizes)
    for split, rows in questions.items():
        (out / split).mkdir(exist_ok=True)
        (out / split / f"{split}.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")
    return {split: len(rows) for split, rows in questions.items()}


class _Sampler:
    """Draws questions until every split is full."""

    def __init__(self, out: Path, seed: int) -> None:
        self.out = out
        self.rng = random.Random(f"questions/{seed}")
        self.asked: set[str] = set()
        self.same_chain: Counter[tuple[str, str]] = Counter()

    def draw_all(self, sizes: SampleSizes) -> dict[str, list[dict[str, Any]]]:
        """The questions of every split, by split, shuffled and numbered."""
        trained = (Exposure.COLD_START, Exposure.RL_ONLY)
        with _Connections(self.out / "train" / "train_databases", SEEN) as seen:
            splits = {
                "cold_start": self._fill(sizes.cold_start, seen, "train", (Exposure.COLD_START,)),
                "train": self._fill(sizes.train, seen, "train", trained),
                "dev": self._fill(sizes.dev, seen, "dev", tuple(Exposure)),
                "test": self._fill(sizes.test, seen, "test", tuple(Exposure)),
            }
        with _Connections(self.out / "unseen" / "unseen_databases", UNSEEN) as unseen:
            splits["unseen"] = self._fill(sizes.unseen, unseen, None, tuple(Exposure))
        for rows in splits.values():
            self.rng.shuffle(rows)
            for index, row in enumerate(rows):
                row["question_id"] = index
        return splits

    def _fill(
        self, count: int, draws: Sequence["_Source"], split: str | None, exposures: Sequence[Exposure]
    ) -> list[dict[str, Any]]:
        """`count` questions whose chain belongs to `split` (any, when None) and whose template has such an exposure."""
        names = [name for name, template in TEMPLATES.items() if template.exposure in exposures]
        rows: list[dict[str, Any]] = []
        barren = 0
        while len(rows) < count and barren < _MAX_BARREN:
            name = self.rng.choice(names)  # retried until it gives a question, so that templates stay balanced
            tries = (self._draw(self.rng.choice(draws), name, split) for _ in range(_MAX_DRAWS_A_QUESTION))
            row = next((row for row in tries if row is not None), None)
            barren = barren + 1 if row is None else 0
            rows += [row] if row is not None else []
        if len(rows) < count:
            raise RuntimeError(f"only {len(rows)} of {count} distinct questions could be drawn for {split or 'unseen'}")
        return rows

    def _draw(self, source: "_Source", name: str, split: str | None) -> dict[str, Any] | None:
        draw = Draw(source.database, source.connection, self.rng)
        try:
            drawn = TEMPLATES[name].draw(draw)
        except NoSuchColumnError:
            return None
        chain = str(drawn.chain)
        key = (source.database.db_id, chain)
        if drawn.question in self.asked or (split and _home(*key) != split) or not _is_sound(drawn, source.connection):
            return None
        if split != "train" and self.same_chain[key] >= _SAME_CHAIN_LIMIT:
            return None
        self.asked.add(drawn.question)
        self.same_chain[key] += 1
        return {
            "question_id": -1,
            "db_id": source.database.db_id,
            "question": drawn.question,
            "evidence": draw.evidence(),
            "SQL": drawn.sql,
            "difficulty": TEMPLATES[name].difficulty,
            "template": name,
            "exposure": str(TEMPLATES[name].exposure),
            "cocte": chain,
            "cocte_flawed": str(drawn.flawed) if drawn.flawed else "",
        }


@dataclass(frozen=True, slots=True)
class _Source:
    database: Database
    connection: sqlite3.Connection


class _Connections:
    """Open read-only connections to the databases in `folder`, closed at the end."""

    def __init__(self, folder: Path, databases: Sequence[Database]) -> None:
        self.sources = [
            _Source(d, sqlite3.connect(f"file:{folder / d.db_id / d.db_id}.sqlite?mode=ro", uri=True))
            for d in databases
        ]

    def __enter__(self) -> list[_Source]:
        return self.sources

    def __exit__(self, *_: object) -> None:
        for source in self.sources:
            source.connection.close()


def _home(db_id: str, chain: str) -> str:
    """The split that a chain belongs to, by its hash, so that no SQL is in two splits."""
    bucket = int(hashlib.sha256(f"{db_id}\n{chain}".encode()).hexdigest(), 16) % 100
    return "test" if bucket < 15 else "dev" if bucket < 25 else "train"


def _is_sound(drawn: Drawn, connection: sqlite3.Connection) -> bool:
    """Gold and chain agree, the answer is not trivial, and the flawed chain really is wrong."""
    gold = set(connection.execute(drawn.sql).fetchall())
    if gold != set(connection.execute(str(drawn.chain)).fetchall()):
        raise AssertionError(f"the chain of {drawn.question!r} does not give the gold result")
    if gold in (set(), {(0,)}, {(None,)}):
        return False
    return drawn.flawed is None or set(connection.execute(str(drawn.flawed)).fetchall()) != gold
