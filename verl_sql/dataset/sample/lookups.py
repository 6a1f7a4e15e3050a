"""The sample for tools: questions about a name whose stored spelling nobody can know without looking it up.

A question says `Bakade`; the database stores `Bakade`, `BAKADE`, `Ba-kade`, `Bakade II` or `of Bakade`, drawn anew for
every row. The databases are variants of the bundled ones, each with its own rows: training, test and unseen variants
share no name on purpose, and the unseen ones not even their tables. A share of the questions has no name in it, so that
a policy also has to learn when a tool is of no use.
"""

import json
import random
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from verl_sql.dataset.sample.databases import Row, draw_rows, quoted, write_database
from verl_sql.dataset.sample.declarations import SEEN, UNSEEN, Database, Role

Spelling = Callable[[str], str]
SPELLINGS: dict[str, Spelling] = {
    "as asked": lambda name: name,
    "capitals": lambda name: name.upper(),
    "hyphen": lambda name: f"{name[:2]}-{name[2:]}",
    "suffix": lambda name: f"{name} II",
    "prefix": lambda name: f"of {name}",
}
AS_ASKED_SHARE = 0.6
"""Share of the names that are stored as a question spells them; the rest is split evenly."""
PLAIN_SHARE = 0.15
"""Share of the questions that name nothing."""


@dataclass(frozen=True, slots=True)
class LookupSizes:
    """How many questions each split gets, and how many variants of a database hold them."""

    cold_start: int = 4000
    train: int = 1000
    test: int = 400
    unseen: int = 150
    variants: int = 12
    test_variants: int = 3


def write_lookups(out: Path, seed: int = 0, sizes: LookupSizes | None = None) -> dict[str, int]:
    """Build databases and questions under `out` in BIRD's layout; the same seed and sizes give the same files.

    Returns:
        The number of questions written, by split.
    """
    sizes = sizes or LookupSizes()
    training = _variants(SEEN, sizes.variants, "", out / "train" / "train_databases", seed)
    tests = _variants(SEEN, sizes.test_variants, "t", out / "test" / "test_databases", seed)
    unseen = _variants(UNSEEN, sizes.test_variants, "u", out / "unseen" / "unseen_databases", seed)
    splits = {
        "cold_start": (training, sizes.cold_start),
        "train": (training, sizes.train),
        "test": (tests, sizes.test),
        "unseen": (unseen, sizes.unseen),
    }
    for split, (sources, count) in splits.items():
        rows = list(_questions(sources, count, random.Random(f"lookups/{seed}/{split}")))
        (out / split).mkdir(parents=True, exist_ok=True)
        (out / split / f"{split}.json").write_text(json.dumps(rows, indent=1, ensure_ascii=False), encoding="utf-8")
    return {split: count for split, (_, count) in splits.items()}


@dataclass(frozen=True, slots=True)
class _Source:
    """One variant: its database, its rows, and the spelling of each name as (asked, stored, style)."""

    database: Database
    path: Path
    names: tuple[tuple[str, str, str], ...]


def _variants(databases: Sequence[Database], count: int, mark: str, folder: Path, seed: int) -> list[_Source]:
    """Write `count` variants of every database."""
    found = []
    for database in databases:
        for number in range(count):
            variant = replace(database, db_id=f"{database.db_id}_{mark}{number}")
            rng = random.Random(f"spelling/{seed}/{variant.db_id}")
            rows = draw_rows(variant, seed)
            names: list[tuple[str, str, str]] = []
            rows[variant.parent.name] = [_respelt(variant, row, rng, names) for row in rows[variant.parent.name]]
            found.append(_Source(variant, write_database(variant, rows, folder), tuple(names)))
    return found


def _respelt(database: Database, row: Row, rng: random.Random, names: list[tuple[str, str, str]]) -> Row:
    """A parent's row with its name in some spelling, which is noted."""
    at = [column.role for column in database.parent.columns].index(Role.NAME)
    others = list(SPELLINGS)[1:]
    style = "as asked" if rng.random() < AS_ASKED_SHARE else rng.choice(others)
    asked = str(row[at])
    stored = SPELLINGS[style](asked)
    names.append((asked, stored, style))
    return (*row[:at], stored, *row[at + 1 :])


def _questions(sources: Sequence[_Source], count: int, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Different questions with an answer, numbered."""
    asked: set[tuple[str, str]] = set()
    number = 0
    while number < count:
        source = rng.choice(sources)
        draw = _plain if rng.random() < PLAIN_SHARE else rng.choice(_TEMPLATES)
        name = rng.choice(source.names)
        drawn = draw(source.database, name, rng)
        if drawn is None or (source.database.db_id, drawn[0]) in asked or not _answers(source.path, drawn[1]):
            continue
        asked.add((source.database.db_id, drawn[0]))
        yield _record(number, source.database, draw, drawn, name)
        number += 1


def _record(
    number: int, database: Database, draw: "_Draw", drawn: tuple[str, str], name: tuple[str, str, str]
) -> dict[str, Any]:
    """One question as BIRD has it, and beside it what a scripted teacher needs."""
    named = draw is not _plain
    asked, stored, style = name if named else ("", "", "none")
    return {
        "question_id": number,
        "db_id": database.db_id,
        "question": drawn[0],
        "evidence": "",
        "SQL": drawn[1],
        "difficulty": "simple",
        "template": draw.__name__.strip("_"),
        "exposure": style,
        "asked": asked,
        "stored": stored,
    }


def _answers(path: Path, sql: str) -> bool:
    """Whether the gold gives something other than nothing, NULL or 0, which a guess would give too."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        rows = connection.execute(sql).fetchall()
    finally:
        connection.close()
    return set(rows) not in (set(), {(None,)}, {(0,)})


_Draw = Callable[[Database, tuple[str, str, str], random.Random], tuple[str, str] | None]
"""(database, name, rng) -> question and gold, or None where the database cannot be asked so."""


def _value(database: Database, name: tuple[str, str, str], rng: random.Random) -> tuple[str, str] | None:
    """Give the weight of Bakade."""
    table = database.parent
    column = rng.choice(table.having(Role.NUMBER, Role.CATEGORY))
    where = f"{quoted(table.shown.name)} = '{name[1]}'"
    opening = rng.choice(("Give", "Show"))
    sql = f"SELECT {quoted(column.name)} FROM {quoted(table.name)} WHERE {where}"
    return f"{opening} the {column.phrase} of {name[0]}.", sql


def _children(database: Database, name: tuple[str, str, str], rng: random.Random) -> tuple[str, str] | None:
    """How many visits belong to Bakade?"""
    return f"How many {database.child.noun} belong to {name[0]}?", f"SELECT COUNT(*) {_joined(database, name[1])}"


def _sum(database: Database, name: tuple[str, str, str], rng: random.Random) -> tuple[str, str] | None:
    """What is the total fee of visits of Bakade?"""
    column = rng.choice(database.child.having(Role.NUMBER))
    words, function = rng.choice((("total", "SUM"), ("highest", "MAX")))
    question = f"What is the {words} {column.phrase} of {database.child.noun} of {name[0]}?"
    return question, f"SELECT {function}({quoted(column.name)}) {_joined(database, name[1])}"


def _plain(database: Database, name: tuple[str, str, str], rng: random.Random) -> tuple[str, str] | None:
    """How many visits have a fee above 20? No name, nothing to look up."""
    table = rng.choice(database.tables)
    column = rng.choice(table.having(Role.NUMBER))
    bound = rng.randint(column.low, column.high)
    words, operator = rng.choice((("above", ">"), ("below", "<")))
    sql = f"SELECT COUNT(*) FROM {quoted(table.name)} WHERE {quoted(column.name)} {operator} {bound}"
    return f"How many {table.noun} have {column.phrase} {words} {bound}?", sql


def _joined(database: Database, stored: str) -> str:
    """`FROM child WHERE link IN (the parent of that name)`."""
    parent, child = database.parent, database.child
    return (
        f"FROM {quoted(child.name)} WHERE {quoted(database.link.name)} IN (SELECT {quoted(parent.key.name)} "
        f"FROM {quoted(parent.name)} WHERE {quoted(parent.shown.name)} = '{stored}')"
    )


_TEMPLATES: tuple[_Draw, ...] = (_value, _children, _sum)
