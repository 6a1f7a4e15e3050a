"""Prepared questions as the makers of SFT sets need them, and the rows they write."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verl_sql.database.catalog import Catalog, DatabaseNotFound
from verl_sql.dataset.parquet import RL_SCHEMA, Message, missing_columns, read_rows


@dataclass(frozen=True, slots=True)
class Question:
    """One row of a prepared parquet.

    Attributes:
        key: names the question among all: source, split and its id.
        prompt: the chat's messages.
        gold: gold SQL.
        info: the row's `extra_info`.
        database: its file, None where it is not there.
    """

    key: str
    prompt: tuple[Message, ...]
    gold: str
    info: dict[str, Any]
    database: Path | None

    def row(self, *answer: Message) -> dict[str, Any]:
        """The SFT_SCHEMA row of prompt and answer."""
        return {"messages": [*self.prompt, *answer], "extra_info": self.info}

    @property
    def chains(self) -> list[str]:
        """Its chains of CTEs: the first one and those of `details.more_chains`."""
        first = self.info["gold_chain"]
        more = json.loads(self.info["details"] or "{}").get("more_chains", [])
        return [first, *more] if first else []


def read_questions(source: Path, catalog: Catalog | None = None) -> Iterator[Question]:
    """The questions of a prepared parquet; databases are looked up in `catalog`.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no prepared parquet.
    """
    if not source.is_file():
        raise FileNotFoundError(f"no parquet {source}; prepare one with data_prep first")
    if missing := missing_columns(source, RL_SCHEMA):
        raise ValueError(f"{source} is no prepared parquet: {', '.join(missing)} missing or of another type")
    for row in read_rows(source):
        info = row["extra_info"]
        database = _database(catalog, info["db_id"]) if catalog else None
        gold = row["reward_model"]["ground_truth"]
        yield Question(question_key(row["data_source"], info), tuple(row["prompt"]), gold, info, database)


def question_key(source: str, info: dict[str, Any]) -> str:
    """A question's name among all: `source/split/question_id`."""
    return f"{source}/{info['split']}/{info['question_id']}"


def said(text: str) -> Message:
    """An assistant's message."""
    return {"role": "assistant", "content": text}


def chain_rows(questions: Sequence[Question] | Iterator[Question]) -> Iterator[dict[str, Any]]:
    """An SFT row for every chain of every question (Reward-SQL's cold start, §4.1)."""
    for question in questions:
        for chain in question.chains:
            yield question.row(said(chain))


def _database(catalog: Catalog, db_id: str) -> Path | None:
    """The question's file, or None."""
    try:
        return catalog.path(db_id)
    except DatabaseNotFound:
        return None
