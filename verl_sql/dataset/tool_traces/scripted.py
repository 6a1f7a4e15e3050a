"""A teacher that is a script, for the sample of look-ups: it knows how a name is stored, and really asks the tools.

Like a teacher that sees the gold, it verifies what it knows to need it: a name that is stored as asked is mostly
answered at once, another one is looked up, at times only after a query has returned nothing. A policy that imitates it
learns to call tools and to copy what they say, and also answers too soon where the teacher knew better: that is left to
reinforcement learning.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verl_sql.dataset.parquet import Message
from verl_sql.sqltext.quoting import cell_text
from verl_sql.sqltext.turns import call_text
from verl_sql.tools import Toolbox


@dataclass(frozen=True, slots=True)
class Habits:
    """How the scripted teacher goes about it; probabilities.

    Attributes:
        sure: that it answers at once where the name is stored as asked.
        draft: that it runs a query with the name as asked before it looks the name up.
    """

    sure: float = 0.95
    draft: float = 0.25


async def scripted_trace(
    toolbox: Toolbox, database: Path, gold: str, details: Mapping[str, Any], habits: Habits, rng: random.Random
) -> list[Message] | None:
    """The messages that follow the prompt: tool calls, the tools' answers, and the gold as the answer.

    Args:
        toolbox: answers the calls.
        database: the question's SQLite file.
        gold: its gold SQL.
        details: the question's `asked` and `stored` name; without them nothing is looked up.
        habits: what the teacher does how often.
        rng: decides.

    Returns:
        None when the search does not find the stored name: such a trace would teach to guess.
    """
    asked, stored = str(details.get("asked") or ""), str(details.get("stored") or "")
    messages: list[Message] = []
    if asked and not (asked == stored and rng.random() < habits.sure):
        if rng.random() < habits.draft:
            draft = gold.replace(cell_text(stored), cell_text(asked))
            await _ask(messages, toolbox, database, "run_sql", {"sql": draft})
        if not messages or asked != stored:
            said = await _ask(messages, toolbox, database, "search_literal", {"text": asked})
            if cell_text(stored) not in said.partition("\n")[0]:
                return None
    return [*messages, answered(gold)]


def answered(sql: str) -> Message:
    """The assistant's message that answers."""
    return {"role": "assistant", "content": f"<answer>{sql}</answer>"}


async def _ask(
    messages: list[Message], toolbox: Toolbox, database: Path, name: str, arguments: Mapping[str, str]
) -> str:
    """Add a call and its answer to the messages; the answer."""
    result = await toolbox.call(name, arguments, database)
    messages.append({"role": "assistant", "content": call_text(name, arguments)})
    messages.append({"role": "tool", "content": result.text})
    return result.text


def n_calls(messages: Sequence[Message]) -> int:
    """How many tools were called."""
    return sum(message["role"] == "tool" for message in messages)
