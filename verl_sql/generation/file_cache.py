"""Values remembered on disk: one small JSON file a key, written whole or not at all, shared by many processes.

For what is slow or costs money to ask again: a judge's verdicts, a model's replies.
"""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any, Generic, TypeVar

Value = TypeVar("Value", str, float)


class FileCache(Generic[Value]):
    """A folder of values of one type, keyed by the content of what was asked.

    Args:
        folder: made at the first write.
        form: type of the values; a file that holds anything else counts as nothing.
    """

    def __init__(self, folder: str | os.PathLike[str], form: type[Value]) -> None:
        """Nothing is read yet."""
        self.folder = Path(folder)
        self.form: type[Value] = form

    @staticmethod
    def key(*content: Any) -> str:
        """SHA-256 of what was asked, as canonical JSON."""
        text = json.dumps(content, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def get(self, key: str) -> Value | None:
        """The remembered value; None when there is none or its file is damaged."""
        try:
            found = json.loads(self._path(key).read_text(encoding="utf-8"))["value"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found if isinstance(found, self.form) else None

    def put(self, key: str, value: Value) -> None:
        """Remember a value; its file appears in one step."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"value": value}, file)
        os.replace(draft, path)

    def _path(self, key: str) -> Path:
        """Where a key's file lies."""
        return self.folder / key[:2] / f"{key}.json"
