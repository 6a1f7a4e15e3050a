"""What the process reward model reads: the one rendering for its training, GRPO and inference (Reward-SQL §4.2).

    <schema and question>
    chosen AS (SELECT mol_id FROM molecule WHERE mass > 43)
    12 rows: mol_id
    1
    4
    7<|step|>
    kept AS (SELECT mol_id FROM atom WHERE elment = 'c')
    error: no such column: elment<|step|>

Each step stands as the policy wrote it, followed by what the database said, followed by the tag at which the model
says how likely the step is correct. Nothing in it depends on the machine: no paths, no times.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verl_sql.database.execution import Execution, Status
from verl_sql.sqltext.chain import Chain
from verl_sql.sqltext.quoting import cell_text, line_text, names_text, neutral

STEP_TAG = "<|step|>"
"""A special token of the model's tokenizer; ask `encoding.tag_id` for its id."""
ROW_LIMIT = 3
"""Rows of a result that are shown."""
COLUMN_LIMIT = 8
"""Columns of a result that are shown."""
CELL_LIMIT = 24
"""Characters of a cell that are shown."""
MESSAGE_LIMIT = 120
"""Characters of an error message that are shown."""

_TAGS = (STEP_TAG,)
_TAG_WITHOUT_MEANING = neutral(STEP_TAG, _TAGS)
_PATH = re.compile(r"(?:file:)?(?:[A-Za-z]:)?(?:[\\/][\w.~+@%-]+){2,}")
_SAID_WITHOUT_MESSAGE = frozenset({Status.TIMEOUT, Status.TOO_LARGE})
"""Their messages tell limits, times and sizes of the machine."""


@dataclass(frozen=True, slots=True)
class RenderedChain:
    """What is scored.

    Attributes:
        text: the rendering; STEP_TAG occurs in it once a segment, at its end, and nowhere else.
        n_steps: segments, so tags: the steps of the chain, and its final query where that is scored too.
    """

    text: str
    n_steps: int


def prompt_text(messages: Sequence[Mapping[str, str]]) -> str:
    """The texts of a chat's user messages: schema and question, without instructions of the system."""
    return "\n".join(message["content"] for message in messages if message["role"] == "user")


def render_chain(
    prompt: str, chain: Chain, results: Sequence[Execution], *, score_final: bool = False, row_limit: int = ROW_LIMIT
) -> RenderedChain:
    """Render a chain with the results of its steps.

    Args:
        prompt: schema and question, as `prompt_text` gives them.
        chain: the policy's SQL, split; a chain that was cut shows its whole steps.
        results: what `stepping` gave: one execution a step, with rows; one more for the final query if it is scored.
        score_final: show and tag the final query as a further segment, as the outcome model needs it. A query without
            CTE is its own final query, so it has one segment either way.
        row_limit: rows of a result that are shown.

    Raises:
        ValueError: there are not as many results as segments.
    """
    texts = segment_texts(chain, score_final)
    if len(results) != len(texts):
        raise ValueError(f"{len(texts)} segments need as many results, not {len(results)}")
    parts = [f"{_inert(prompt)}\n"]
    for text, result in zip(texts, results, strict=True):
        parts.append(f"{_inert(text)}\n{render_result(result, row_limit)}{STEP_TAG}\n")
    return RenderedChain("".join(parts), len(texts))


def segment_texts(chain: Chain, score_final: bool = False) -> list[str]:
    """What is tagged: the text of each step, and of the final query where that is scored."""
    texts = [chain.text[step.start : step.end] for step in chain.steps]
    return [*texts, chain.final_sql] if score_final and chain.final_sql else texts


def render_result(result: Execution, row_limit: int = ROW_LIMIT) -> str:
    """What the database said: number of rows, columns and the first rows, or what went wrong."""
    if not result.ok:
        return _failure(result)
    shown = result.columns[:COLUMN_LIMIT]
    more = f" | … {len(result.columns) - COLUMN_LIMIT} more" if len(result.columns) > COLUMN_LIMIT else ""
    unit = "row" if result.n_rows == 1 else "rows"
    head = f"{result.n_rows} {unit}: {names_text(shown, CELL_LIMIT, _TAGS)}{more}"
    rows = (result.rows or ())[:row_limit]
    return "\n".join([head, *(" | ".join(_cell(cell) for cell in row[:COLUMN_LIMIT]) for row in rows)])


def _failure(result: Execution) -> str:
    """Status and reason of a query that failed, the same on every machine."""
    if result.data_fault or result.status in _SAID_WITHOUT_MESSAGE:
        return "error: the database cannot be read" if result.data_fault else result.status.value
    return f"{result.status.value}: {line_text(_PATH.sub('…', result.message), MESSAGE_LIMIT, _TAGS)}"


def _cell(value: Any) -> str:
    """A cell as an SQL literal; a float with six digits, since sums differ in the last ones from plan to plan."""
    if isinstance(value, float):
        return f"{value:.6g}"
    return cell_text(value, CELL_LIMIT, _TAGS)


def _inert(text: str) -> str:
    """Text of prompt or policy in which no tag stands, and nothing that a tokenizer cannot read."""
    return text.replace(STEP_TAG, _TAG_WITHOUT_MEANING).encode("utf-8", "backslashreplace").decode()
