"""Every SQL of a multi-turn completion, in order, the last one final."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from verl_sql.sqltext.extract import Answer, extract_answer
from verl_sql.sqltext.turns import split_turns

MAX_ATTEMPTS = 16
"""Attempts that are run at most: the first ones and the final one."""
_BLOCK = re.compile(r"<answer>.*?</answer>", re.DOTALL | re.IGNORECASE)
_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL | re.IGNORECASE)


def every_answer(completion: str, answer: Answer, extra_info: Mapping[str, Any]) -> Sequence[str]:
    """The attempts of a multi-turn completion.

    An agent loop hands them over as `extra_info["attempts"]`, a list of SQL strings or its JSON. Without that, as in a
    dump, they are what the policy's turns answer if feedback stands between them (`verl_sql.sqltext.turns`), else the
    `<answer>` blocks of the text outside the thinking; a text without any gives its one answer, possibly empty.
    """
    given = extra_info.get("attempts")
    if isinstance(given, str) and given:
        given = json.loads(given)
    if given is not None and len(given) > 0:
        sqls = [str(sql or "") for sql in given]
    elif len(turns := _turns(completion)) > 1:
        sqls = [extract_answer(turn).sql or "" for turn in turns]
    else:
        blocks = _BLOCK.findall(_THOUGHT.sub(" ", completion))
        sqls = [extract_answer(block, "answer_tag").sql or "" for block in blocks] or [answer.sql or ""]
    return sqls if len(sqls) <= MAX_ATTEMPTS else [*sqls[: MAX_ATTEMPTS - 1], sqls[-1]]


def _turns(completion: str) -> list[str]:
    """The policy's own turns between those of its environment."""
    return [turn.text for turn in split_turns(completion) if turn.role == "assistant"]
