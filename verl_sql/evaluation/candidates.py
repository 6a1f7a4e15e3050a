"""Candidates of best-of-N: what a policy answered to one question, what running it gave, what reward models say of it.

A file of candidates has one JSON object a line, the lines of a question together: the greedy answer first (`sample` is
-1), then the samples from 0 on.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import fsum
from pathlib import Path
from typing import Any

NO_ANSWER = "no_answer"
"""Status of a completion in which no SQL was found."""
HEAD = ("key", "split", "db_id", "gold", "difficulty")
"""What every line says of its question."""
GREEDY = -1
"""What stands for the greedy answer among the numbers of the samples."""


class CandidatesError(ValueError):
    """A file of candidates that is missing or cannot be used; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """One answer to a question.

    Attributes:
        text: what the policy wrote.
        sql: the SQL found in it, empty when there is none.
        status: how running it ended (`verl_sql.database.execution.Status`), or NO_ANSWER.
        digest: of its result as a set of rows (bird_set), empty unless it executes.
        n_steps: whole steps of its chain.
        step_scores: P(correct) of each step by the process reward model, and of the final query by a model that scores
            it like a step; None where it was not asked.
        outcome_score: P(correct) of the whole by the outcome reward model; None where it was not asked.
        right: whether its result equals the gold's as a set of rows (OR of the paper).
        finished: False when the length limit cut the text.
    """

    text: str
    sql: str
    status: str
    digest: str = ""
    n_steps: int = 0
    step_scores: tuple[float, ...] | None = None
    outcome_score: float | None = None
    right: bool = False
    finished: bool = True

    @property
    def executes(self) -> bool:
        """Whether it ran to its end."""
        return self.status == "ok"

    @property
    def process_reward(self) -> float | None:
        """PR, the mean of its step scores (Reward-SQL §5.1): 0 without a whole step, None where it was not asked."""
        if self.step_scores is None:
            return None
        return fsum(self.step_scores) / len(self.step_scores) if self.step_scores else 0.0


@dataclass(frozen=True, slots=True)
class Answered:
    """A question with its candidates.

    Attributes:
        key: names the question: `source/split/question_id`.
        split: its split.
        db_id: its database.
        gold: its gold SQL.
        difficulty: as the dataset calls it, empty when it does not.
        greedy: the answer at temperature 0.
        samples: the sampled answers, in the order in which they came.
    """

    key: str
    split: str
    db_id: str
    gold: str
    difficulty: str
    greedy: Candidate
    samples: tuple[Candidate, ...]


def candidate_lines(answered: Answered) -> list[dict[str, Any]]:
    """The lines of one question for a file of candidates."""
    head = {name: getattr(answered, name) for name in HEAD}
    numbered = enumerate((answered.greedy, *answered.samples), start=GREEDY)
    return [head | {"sample": number} | _fields(candidate) for number, candidate in numbered]


def append_candidates(path: Path, answered: Iterable[Answered]) -> None:
    """Append questions to a file of candidates."""
    with path.open("a", encoding="utf-8") as sink:
        for one in answered:
            sink.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in candidate_lines(one))


def read_candidates(path: Path) -> list[Answered]:
    """The questions of a file of candidates, in its order.

    Raises:
        CandidatesError: the file is missing or empty, a line is no candidate, or the questions do not all have a greedy
            answer and the same number of samples, at least one.
    """
    if not path.is_file():
        raise CandidatesError(f"there is no file of candidates {path}")
    with path.open(encoding="utf-8") as lines:
        rows = [_row(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    groups = [list(group) for _, group in groupby(rows, key=lambda row: row["key"])]
    if not groups:
        raise CandidatesError(f"{path} holds no candidates")
    for group in groups:
        if [row["sample"] for row in group] != list(range(GREEDY, len(groups[0]) - 1)) or len(group) < 2:
            raise CandidatesError(f"{path}: question {group[0]['key']} lacks its greedy answer or some of its samples")
    return [_answered(group) for group in groups]


def _fields(candidate: Candidate) -> dict[str, Any]:
    fields = {name: getattr(candidate, name) for name in Candidate.__slots__}
    return fields | {"step_scores": None if candidate.step_scores is None else list(candidate.step_scores)}


def _row(path: Path, number: int, line: str) -> dict[str, Any]:
    """One line, read."""
    try:
        row = json.loads(line)
        missing = [name for name in ("key", "sample", *Candidate.__slots__) if name not in row]
    except (ValueError, TypeError):
        raise CandidatesError(f"{path} line {number} is no JSON object") from None
    if missing:
        raise CandidatesError(f"{path} line {number} is no candidate: it has no {missing[0]!r}")
    return dict(row)


def _answered(rows: Sequence[Mapping[str, Any]]) -> Answered:
    greedy, *samples = (_candidate(row) for row in rows)
    head = {name: str(rows[0].get(name) or "") for name in HEAD}
    return Answered(greedy=greedy, samples=tuple(samples), **head)


def _candidate(row: Mapping[str, Any]) -> Candidate:
    fields = {name: row[name] for name in Candidate.__slots__}
    scores = fields.pop("step_scores")
    return Candidate(step_scores=None if scores is None else tuple(scores), **fields)
