"""Scored rollouts as JSON lines, whoever sampled them: single answers or whole multi-turn chats.

A line holds the question (`question_id`; `data_source` and `split` too where ids alone are not unique), what was
written (`completion`, or `messages` that follow the prompt: assistant and tool turns), and its `score`; `acc` and
`finished` if known. `data_prep/rollouts.py` writes such files.
verl's own dumps are read as they are: `input`, `output`, `gts`, `score`; their question is the one whose gold is `gts`
and whose words stand in `input`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verl_sql.dataset.sft.questions import Question, said
from verl_sql.generation.sampler import Message
from verl_sql.sqltext.turns import messages_of


@dataclass(frozen=True, slots=True)
class Rollout:
    """One scored answer.

    Attributes:
        question_id: the question's id.
        key: `source/split/question_id` when the line tells source and split, else nothing.
        messages: what followed the prompt; the last one is the assistant's.
        score: the reward.
        acc: execution accuracy, or None.
        shown: the rendered prompt of a verl dump, which names no question.
        finished: False when the line says that the length limit cut it.
    """

    question_id: str
    key: str
    messages: tuple[Message, ...]
    score: float
    acc: float | None
    shown: str = ""
    finished: bool = True

    @property
    def text(self) -> str:
        """What was written last."""
        return self.messages[-1]["content"]


def read_rollouts(files: Iterable[Path]) -> Iterator[Rollout]:
    """The rollouts of some files, line by line.

    Raises:
        FileNotFoundError: a file is not there.
        ValueError: a line lacks the question's id, the text or (for scored rollouts) has a score that is no number.
    """
    for file in files:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield _rollout(json.loads(line), f"{file.name}, line {number}")


def by_question(rollouts: Iterable[Rollout], questions: Iterable[Question]) -> Iterator[tuple[Question, list[Rollout]]]:
    """Each question that has rollouts, with them; found by key, by id, or in a dump by gold and words.

    Raises:
        ValueError: an id without source and split belongs to several questions.
    """
    groups: dict[str, list[Rollout]] = {}
    for rollout in rollouts:
        groups.setdefault(rollout.key or rollout.question_id, []).append(rollout)  # of a dump: the gold
    seen: set[str] = set()
    for question in questions:
        own = str(question.info["question_id"])
        if own in groups and own in seen:
            raise ValueError(
                f"question_id {own} belongs to several questions; rollouts must tell data_source and split"
            )
        seen.add(own)
        dumped = [r for r in groups.get(question.gold, ()) if r.shown and question.info["question"] in r.shown]
        if found := [*groups.get(question.key, ()), *groups.get(own, ()), *dumped]:
            yield question, found


def _rollout(line: Mapping[str, Any], where: str) -> Rollout:
    """A rollout of one line."""
    text = line.get("completion", line.get("output"))
    spoken = () if text is None else tuple(messages_of(text)) if "<tool_response>" in text else (said(text),)
    messages = tuple(line["messages"]) if line.get("messages") else spoken
    dumped = "question_id" not in line and "gts" in line and "input" in line
    if ("question_id" not in line and not dumped) or not messages or messages[-1].get("role") != "assistant":
        raise ValueError(f"{where}: a rollout has question_id, and completion or messages that end with the assistant")
    source, split, own = line.get("data_source"), line.get("split"), str(line["gts" if dumped else "question_id"])
    key = f"{source}/{split}/{own}" if source and split else ""
    acc = line.get("acc")
    score, acc = float(line.get("score", acc or 0.0)), None if acc is None else float(acc)
    shown, finished = str(line["input"]) if dumped else "", bool(line.get("finished", True))
    return Rollout(own, key, messages, score, acc, shown, finished)
