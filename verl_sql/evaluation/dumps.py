"""Validation dumps of verl, paired with the questions that were asked.

verl 0.9.1 writes `<trainer.validation_data_dir>/<step>.jsonl`, one completion a line, ordered by a random uid: `input`
(the prompt as text, special tokens dropped), `output`, `gts`, `score`, `step`, `uid`, and what the reward function
returned (`acc`, `outcome`, ...). What the evaluation parquet knows beside it (split, question_id, difficulty, details)
is not in the dump, so that each group of lines is traced back to its row by prompt and gold query.
"""

import json
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class DumpError(ValueError):
    """A dump that cannot be read or paired; the message is one sentence that says what and where."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One line of a dump.

    Attributes:
        uid: what the completions of one question share; prompt and gold in a dump that has no uids.
        session: number of the completion among them, from 0; the line where there are no uids.
        prompt: the prompt as text, special tokens dropped.
        gold: the gold SQL.
        output: the policy's text.
        acc: 1.0 when the comparator called the prediction right, else 0.0.
        outcome: how it ended (`verl_sql.rewards.verdict.Outcome`), empty when the reward function does not say.
    """

    uid: str
    session: int
    prompt: str
    gold: str
    output: str
    acc: float
    outcome: str


@dataclass(frozen=True, slots=True)
class Question:
    """One row of an evaluation parquet file (RL_SCHEMA).

    Attributes:
        split: `extra_info.split`; the parquet file's name when that is empty.
        db_id: the database.
        question_id: the dataset's own id.
        difficulty: as the dataset calls it, empty when it does not.
        details: what the dataset knows beyond the fixed columns (the bundled sample: `template`, `exposure`).
        message: text of the last user message.
        gold: the gold SQL.
    """

    split: str
    db_id: str
    question_id: str
    difficulty: str
    details: Mapping[str, Any]
    message: str
    gold: str

    def __str__(self) -> str:
        """Split, database and id, to name it in a message."""
        return f"question {self.question_id} on {self.db_id} ({self.split})"


def read_dump(path: Path) -> list[Completion]:
    """The completions of a validation dump; of one that an agent loop gave in several parts, the last part.

    Raises:
        DumpError: there is no such file, it is empty, or a line is no completion with `input`, `output`, `gts`, `acc`.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")  # splitlines would also part lines at U+2028
    except FileNotFoundError:
        raise DumpError(f"there is no validation dump {path}") from None
    latest: dict[tuple[str, int], tuple[int, Completion]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        part, completion = _completion(path, number, line)
        key = (completion.uid, completion.session)
        if key not in latest or part >= latest[key][0]:
            latest[key] = (part, completion)
    if not latest:
        raise DumpError(f"the validation dump {path} is empty")
    return [completion for _, completion in latest.values()]


def read_questions(paths: Iterable[Path]) -> list[Question]:
    """The questions of evaluation parquet files, in order.

    Raises:
        DumpError: a file is missing or has other columns than RL_SCHEMA.
    """
    return [_question(row, path) for path in paths for row in _rows(path)]


def pair(completions: Sequence[Completion], questions: Sequence[Question], where: str) -> list[tuple[Completion, ...]]:
    """The completions of each question, in the order of `questions`, each sorted by session.

    A completion belongs to the question with the same gold query whose last user message its prompt contains; of
    several, the longest message counts. White space and Unicode composition do not: tokenizers may change both.
    Questions that agree in message and gold share the groups of completions among them, in the order of their uids.

    Args:
        completions: all of one dump.
        questions: all that were asked.
        where: the dump's name, for the message of an error.

    Raises:
        DumpError: a completion fits no question, or the questions and groups of completions do not come out even.
    """
    groups: dict[str, list[Completion]] = defaultdict(list)
    for completion in completions:
        groups[completion.uid].append(completion)
    by_gold = _indices_by_gold(questions)
    paired: dict[int, tuple[Completion, ...]] = {}
    for uid in sorted(groups):
        group = sorted(groups[uid], key=lambda completion: completion.session)
        prompt, gold = _squeezed(group[0].prompt), group[0].gold
        twins = next((indices for message, indices in by_gold[gold] if message in prompt), None)
        if twins is None:
            raise DumpError(f"{where}: no question of the evaluation files has this prompt and gold query: {gold!r}")
        free = next((index for index in twins if index not in paired), None)
        if free is None:
            raise DumpError(f"{where}: {questions[twins[0]]} was answered twice, under different uids")
        paired[free] = tuple(group)
    return [_found(paired, index, questions, where) for index in range(len(questions))]


def _indices_by_gold(questions: Sequence[Question]) -> dict[str, list[tuple[str, list[int]]]]:
    """For each gold query the messages that ask for it, the longest first, each with the indices of its questions."""
    twins: dict[tuple[str, str], list[int]] = defaultdict(list)
    for index, question in enumerate(questions):
        twins[question.gold, _squeezed(question.message)].append(index)
    by_gold: dict[str, list[tuple[str, list[int]]]] = defaultdict(list)
    for (gold, message), indices in sorted(twins.items(), key=lambda item: -len(item[0][1])):
        by_gold[gold].append((message, indices))
    return by_gold


def _found(
    paired: Mapping[int, tuple[Completion, ...]], index: int, questions: Sequence[Question], where: str
) -> tuple[Completion, ...]:
    """The completions of question `index`."""
    if index not in paired:
        missing = f"{len(questions) - len(paired)} of {len(questions)}"
        raise DumpError(f"{where}: {missing} questions have no completion, first {questions[index]}")
    return paired[index]


def _squeezed(text: str) -> str:
    """Text without white space, composed as most tokenizers compose it (NFC)."""
    return "".join(unicodedata.normalize("NFC", text).split())


def _completion(path: Path, number: int, line: str) -> tuple[int, Completion]:
    """One line read, with the number of its part (0 unless an agent loop gives several)."""
    try:
        row = json.loads(line)
        prompt, output, gold, acc = row["input"], row["output"], row["gts"], float(row["acc"])
    except (ValueError, KeyError, TypeError) as error:
        problem = f"without {error}" if isinstance(error, KeyError) else f"that cannot be read ({error})"
        raise DumpError(f"{path} line {number} is a completion {problem}") from None
    uid, session, part = _uid(str(row["uid"])) if row.get("uid") else (f"{prompt}\n{gold}", number, 0)
    return part, Completion(uid, session, str(prompt), str(gold), str(output), acc, str(row.get("outcome") or ""))


def _uid(value: str) -> tuple[str, int, int]:
    """verl's key `<uid>_<session>_<part>` in its parts."""
    pieces = value.rsplit("_", 2)
    if len(pieces) == 3 and pieces[1].isdigit() and pieces[2].isdigit():
        return pieces[0], int(pieces[1]), int(pieces[2])
    return value, 0, 0


def _rows(path: Path) -> list[dict[str, Any]]:
    """The rows of an evaluation file."""
    from verl_sql.dataset.parquet import RL_SCHEMA, missing_columns, read_rows

    if not path.is_file():
        raise DumpError(f"there is no evaluation file {path}")
    missing = missing_columns(path, RL_SCHEMA)
    if missing:
        raise DumpError(f"the evaluation file {path} lacks the column {missing[0]!r}, or has it in another type")
    return list(read_rows(path))


def _question(row: Mapping[str, Any], path: Path) -> Question:
    """One row read."""
    extra = row["extra_info"]
    message = next((m["content"] for m in reversed(row["prompt"]) if m["role"] == "user"), "")
    details = json.loads(extra["details"] or "{}")
    return Question(
        split=extra["split"] or path.stem,
        db_id=extra["db_id"] or "",
        question_id=extra["question_id"] or str(extra["index"]),
        difficulty=extra["difficulty"] or "",
        details=details,
        message=message,
        gold=row["reward_model"]["ground_truth"],
    )
