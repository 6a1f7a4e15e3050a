"""Replies of a fixed form: one JSON object and nothing else; and those that were usable, remembered on disk."""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
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


class ReplyCache:
    """A folder of replies, one small JSON file each, keyed by the model and the chat; shared by many processes.

    Args:
        folder: made at the first write.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Nothing is read yet."""
        self.folder = Path(folder)

    @staticmethod
    def key(model: str, messages: Sequence[Mapping[str, str]]) -> str:
        """SHA-256 of model and chat, as canonical JSON."""
        text = json.dumps([model, list(messages)], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def get(self, key: str) -> str | None:
        """The remembered text; None when there is none or its file is damaged."""
        try:
            found = json.loads(self._path(key).read_text(encoding="utf-8"))["reply"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found if isinstance(found, str) else None

    def put(self, key: str, reply: str) -> None:
        """Remember a text; its file appears in one step."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"reply": reply}, file)
        os.replace(draft, path)

    def _path(self, key: str) -> Path:
        """Where a key's file lies."""
        return self.folder / key[:2] / f"{key}.json"


def default_folder() -> str:
    """Where replies are remembered when nothing names a folder: VERL_SQL_REPLIES, else below the user's cache."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return os.environ.get("VERL_SQL_REPLIES") or str(Path(home) / "verl_sql" / "replies")
