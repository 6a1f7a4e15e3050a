"""Replies of a fixed form: one JSON object and nothing else; and where usable ones are remembered."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_THOUGHT = re.compile(r"\A.*</think>", re.DOTALL)
_FENCE = re.compile(r"\A```(?:json)?\s*\n(.*)\n\s*```\Z", re.DOTALL)
SHOWN = 120
"""Characters of an unusable reply that a message shows."""


class UnusableReply(ValueError):
    """A reply is not of the form that was asked for."""


def read_object(text: str, forms: Mapping[str, type]) -> dict[str, Any]:
    """The JSON object that a reply consists of, which must have exactly the keys of `forms`, each of its type.

    A reasoning model's thinking before `</think>` and one fence around the object are let pass. Prose around it,
    several objects, missing and further keys are not: a reply that quotes what it was asked about must not be mistaken
    for an answer.

    Raises:
        UnusableReply: saying what is wrong.
    """
    body = _THOUGHT.sub("", text).strip()
    fenced = _FENCE.match(body)
    try:
        found = json.loads(fenced.group(1) if fenced else body)
    except (ValueError, RecursionError) as error:
        raise UnusableReply(f"no JSON object: {body[:SHOWN]!r}") from error
    if not isinstance(found, dict) or set(found) != set(forms):
        raise UnusableReply(f"not an object with the keys {', '.join(forms)}: {body[:SHOWN]!r}")
    for key, form in forms.items():
        if not isinstance(found[key], form):
            raise UnusableReply(f"{key} is no {form.__name__}: {body[:SHOWN]!r}")
    return found


def default_folder() -> str:
    """Where replies are remembered when nothing names a folder: VERL_SQL_REPLIES, else below the user's cache."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return os.environ.get("VERL_SQL_REPLIES") or str(Path(home) / "verl_sql" / "replies")
