"""Ask an index for the literals nearest to some words. Every query runs through the guarded executor, with a deadline.

Words are looked up in the index's vocabulary first. Those that are there rank literals by BM25; words that nearly every
literal has are left out, so that the work stays bounded. When no word is there, words that begin like them and are
spelled nearly like them take their place: `Barcelone` finds `Barcelona`, `Xarcelona` does not.
"""

import re
import unicodedata
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rapidfuzz import fuzz, process

from verl_sql.database.execution import Execution
from verl_sql.database.executor import Executor

COMMON = 5_000
"""A word in more literals than this is not ranked by, if a rarer one was asked for."""
RANKED = 10_000
"""Literals that are ranked at most."""
NEAR = 70.0
"""How alike a word of the vocabulary must be (rapidfuzz ratio, 0 to 100) to stand in for an unknown one."""
NEAR_WORDS = 8
SHORTER, LONGER = 2, 6
"""By how many letters such a word may be shorter or longer."""
BEGINNINGS = 5_000
"""Words of the vocabulary with the same beginning that are compared at most."""
MAX_WORDS = 16

_WORD = re.compile(r"[^\W_]+")
_Asking = Generator[tuple[str, int], Execution, "list[Literal]"]


@dataclass(frozen=True, slots=True)
class Literal:
    """A text value as it is stored.

    Attributes:
        table, column: where it stands.
        value: its spelling.
        rows: rows that hold it.
        score: BM25, larger is nearer.
    """

    table: str
    column: str
    value: str
    rows: int
    score: float


def search(
    executor: Executor,
    index: Path,
    text: str,
    limit: int = 10,
    table: str | None = None,
    column: str | None = None,
    timeout: float | None = None,
) -> list[Literal]:
    """The literals nearest to `text`, best first; of equals the more frequent, then the shorter.

    Args:
        executor: runs the queries.
        index: what `ensure_index` gave.
        text: the words, in any spelling.
        limit: literals at most.
        table, column: only literals of this table or column, whatever the case of its name.
        timeout: seconds one of the (at most three) queries may run.

    Raises:
        LookupTimeout: a query ran out of time.
        DatabaseNotFound, DatabaseUnusable: the index is gone or broken.
    """
    asking = _ask(text, limit, table, column)
    try:
        request = next(asking)
        while True:
            sql, keep = request
            request = asking.send(executor.execute(index, sql, timeout=timeout, keep_rows=keep))
    except StopIteration as done:
        return done.value


async def asearch(
    executor: Executor,
    index: Path,
    text: str,
    limit: int = 10,
    table: str | None = None,
    column: str | None = None,
    timeout: float | None = None,
) -> list[Literal]:
    """`search` for an event loop."""
    asking = _ask(text, limit, table, column)
    try:
        request = next(asking)
        while True:
            sql, keep = request
            request = asking.send(await executor.aexecute(index, sql, timeout=timeout, keep_rows=keep))
    except StopIteration as done:
        return done.value


class LookupTimeout(RuntimeError):
    """A look-up did not end in time; the message is the executor's."""


def _ask(text: str, limit: int, table: str | None, column: str | None) -> _Asking:
    """The search as a talk with whoever runs queries: yields (SQL, rows to keep), is sent executions."""
    words = _words(text)
    if not words:
        return []
    known = yield from _frequencies(words)
    match = _any_of(words, known)
    found: list[Literal] = []
    if match:
        found = yield from _ranked(match, text, limit, table, column)
    if not found:
        near = yield from _near_words([word for word in words if word not in known] or words)
        if near:
            found = yield from _ranked(_quoted(near), text, limit, table, column)
    return found


def _frequencies(words: Sequence[str]) -> Generator[tuple[str, int], Execution, dict[str, int]]:
    """How many literals hold each word that is in the vocabulary."""
    listed = ", ".join(map(_literal, words))
    answer = yield f"SELECT term, doc FROM word WHERE term IN ({listed})", len(words)
    return dict(_rows(answer))


def _any_of(words: Sequence[str], known: Mapping[str, int]) -> str:
    """The FTS5 expression: any of the known words, without common ones unless all are; nothing when none is known."""
    there = [word for word in words if word in known]
    rare = [word for word in there if known[word] <= COMMON]
    return _quoted(rare) if rare else _quoted(there, " AND ")


def _quoted(words: Sequence[str], operator: str = " OR ") -> str:
    """Words as FTS5 strings, joined."""
    return operator.join(f'"{word}"' for word in words)


def _ranked(
    match: str, text: str, limit: int, table: str | None, column: str | None
) -> Generator[tuple[str, int], Execution, list[Literal]]:
    """The literals that match, ranked; one spelled exactly as asked, case aside, comes first."""
    places = [
        f'place."{kind}" = {_literal(name)} COLLATE NOCASE'
        for kind, name in (("table", table), ("column", column))
        if name
    ]
    answer = yield (
        'SELECT place."table", place."column", value, n, score FROM '
        f"(SELECT rowid AS found, -bm25(words, 1.0, 0.5) AS score FROM words WHERE words MATCH {_literal(match)} "
        f"LIMIT {RANKED}) JOIN literal ON literal.id = found JOIN place ON place.id = literal.place "
        f"{'WHERE ' + ' AND '.join(places) if places else ''} "
        f"ORDER BY lower(value) = lower({_literal(text.strip())}) DESC, round(score, 6) DESC, "
        "n DESC, length(value), found "
        f"LIMIT {int(limit)}",
        int(limit),
    )
    return [Literal(*row) for row in _rows(answer)]


def _near_words(words: Sequence[str]) -> Generator[tuple[str, int], Execution, list[str]]:
    """Words of the vocabulary that begin like one of `words` and are spelled nearly like it, the nearest first."""
    ranges = " OR ".join(
        f"(term >= {_literal(word[:2])} AND term < {_literal(word[:1] + _after(word[1:2]))} "
        f"AND length(term) BETWEEN {len(word) - SHORTER} AND {len(word) + LONGER})"
        for word in words
    )
    answer = yield f"SELECT term FROM word WHERE {ranges} LIMIT {BEGINNINGS}", BEGINNINGS
    terms = [term for (term,) in _rows(answer)]
    scored: dict[str, float] = {}
    for word in words:
        begun = [(term, NEAR) for term in terms if len(word) > 2 and term.startswith(word)]
        alike = process.extract(word, terms, scorer=fuzz.ratio, score_cutoff=NEAR, limit=NEAR_WORDS)
        for term, score in [*begun[:NEAR_WORDS], *((term, score) for term, score, _ in alike)]:
            scored[term] = max(score, scored.get(term, 0.0))
    return sorted(scored, key=lambda term: (-scored[term], term))[:NEAR_WORDS]


def _after(character: str) -> str:
    """A text that sorts after every text beginning with the character."""
    return chr(ord(character) + 1) if character else "\U0010ffff"


def _words(text: str) -> list[str]:
    """The words as FTS5's tokenizer writes them, each once, and up to three of them written as one."""
    bare = unicodedata.normalize("NFKD", text)
    folded = "".join(c for c in bare if not unicodedata.combining(c)).lower()
    words = _WORD.findall(folded)[:MAX_WORDS]
    joined = ["".join(words)] if 1 < len(words) <= 3 else []
    return list(dict.fromkeys([*words, *joined]))


def _literal(text: str) -> str:
    """Text as an SQL literal."""
    return "'" + text.replace("\x00", "").replace("'", "''") + "'"


def _rows(execution: Execution) -> Sequence[tuple[Any, ...]]:
    """The rows of a look-up.

    Raises:
        LookupTimeout: it did not end in time.
    """
    if not execution.ok:
        raise LookupTimeout(execution.message or str(execution.status))
    return execution.rows or ()
