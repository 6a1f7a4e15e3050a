"""The diagnosis tells nothing of the gold but clauses and kinds: on every recorded pair of real golds and predictions.

Two properties. No word of the text is a word of the gold: neither a name nor a literal, quoted or not, nor a number.
And the stronger one, which no chance coincidence of words can blur: with other names and other literals in the gold,
wherever the prediction does not have them, the text is the same to the letter.
"""

import json
import re
from collections.abc import Iterable
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from verl_sql.rewards.schema_items import names_of
from verl_sql.sqltext.diagnosis import diagnose
from verl_sql.sqltext.diagnosis_text import diagnosis_text, schema_words, vocabulary
from verl_sql.sqltext.items import SchemaNames
from verl_sql.sqltext.scan import TokenKind, scan, unquote

KEYWORDS = frozenset({"select", "from", "where", "group", "order", "by", "having", "limit", "with", "as", "join", "on"})
Pair = tuple[str, str, SchemaNames]


@cache
def recorded_pairs(shared: Path) -> list[Pair]:
    """(prediction, gold, names) of every recorded pair, right or wrong, and each prediction with another gold too."""
    rows = [json.loads(line) for line in (shared / "parity" / "pairs.jsonl").read_text("utf-8").splitlines()]
    pairs = [(row["pred"], row["gold"], names_of(database(shared, row))) for row in rows]
    others = [(a["pred"], b["gold"], names_of(database(shared, b))) for a, b in zip(rows, rows[7:], strict=False)]
    return list(dict.fromkeys(pairs + [pair for pair in others if pair[0] and pair[1]]))


def database(shared: Path, row: dict) -> Path:
    root = "spider_dev/database" if row["bench"].startswith("spider") else "bird/dev_databases"
    return shared / "data" / root / row["db_id"] / f"{row['db_id']}.sqlite"


def words(text: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"\w+", text)}


def told(pred: str, gold: str, names: SchemaNames) -> str:
    return diagnosis_text(diagnose(pred, gold, names), schema_words(names))


def leaks(pairs: Iterable[Pair]) -> list[tuple[str, str, str]]:
    """Pairs whose text has a word of the gold, a whole literal of it, or a word from outside the vocabulary."""
    closed = {word.casefold() for word in vocabulary()}
    found = []
    for pred, gold, names in pairs:
        text = told(pred, gold, names)
        literals = {unquote(gold[t.start : t.end]).casefold() for t in scan(gold) if t.kind is TokenKind.STRING}
        outside = {word.rstrip("_") for word in words(text)} - closed
        if words(text) & words(gold) or outside or any(" " in text and text in literals for text in [text.casefold()]):
            found.append((pred, gold, text))
    return found


def renamed(pred: str, gold: str, names: SchemaNames) -> tuple[str, SchemaNames]:
    """The gold and its schema with other names and literals, wherever the prediction does not have them."""
    every = {*names.columns, *(c for columns in names.columns.values() for c in columns)}
    held = {unquote(pred[t.start : t.end]).casefold() for t in scan(pred)}
    fresh, number = count(), count(700001)
    other: dict[str, str] = {}
    parts = []
    for token in scan(gold):
        raw = gold[token.start : token.end]
        text = unquote(raw).casefold()
        called = gold[token.end :].lstrip().startswith("(")
        if text in held or token.kind not in (TokenKind.WORD, TokenKind.STRING, TokenKind.QUOTED):
            parts.append(raw)
        elif token.kind is TokenKind.WORD and raw.isdigit():
            parts.append(other.setdefault(text, str(next(number))))
        elif token.kind is not TokenKind.WORD or (text in every - KEYWORDS and not called):
            new = other.setdefault(text, f"zq{next(fresh)}")
            parts.append(new if token.kind is TokenKind.WORD else raw[0] + new + ("]" if raw[0] == "[" else raw[0]))
        else:
            parts.append(raw)
    columns = {
        other.get(table, table): frozenset(other.get(column, column) for column in columns)
        for table, columns in names.columns.items()
    }
    return "".join(parts), SchemaNames(columns)


def interferences(pairs: Iterable[Pair]) -> list[tuple[str, str, str, str]]:
    """Pairs whose text changes with the names and literals that only the gold has."""
    found = []
    for pred, gold, names in pairs:
        other, other_names = renamed(pred, gold, names)
        a, b = diagnosis_text(diagnose(pred, gold, names)), diagnosis_text(diagnose(pred, other, other_names))
        if a != b:
            found.append((pred, gold, a, b))
    return found


def test_no_word_of_the_gold_is_told(shared_dir: Path):
    assert leaks(recorded_pairs(shared_dir)[::20]) == []


def test_names_and_literals_do_not_matter(shared_dir: Path):
    pairs = recorded_pairs(shared_dir)[::20]
    assert interferences(pairs) == []
    assert sum(renamed(*pair)[0] != pair[1] for pair in pairs) > len(pairs) / 2


@pytest.mark.long
def test_no_word_of_the_gold_is_told_on_any_pair(shared_dir: Path):
    assert leaks(recorded_pairs(shared_dir)) == []


@pytest.mark.long
def test_names_and_literals_do_not_matter_on_any_pair(shared_dir: Path):
    assert interferences(recorded_pairs(shared_dir)) == []
