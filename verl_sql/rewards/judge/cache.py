"""Verdicts remembered on disk: one small JSON file a key, written whole or not at all, shared by many processes."""

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any


class VerdictCache:
    """A folder of verdicts, keyed by the content of what was asked."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Use `folder`, which is made at the first write."""
        self.folder = Path(folder)

    @staticmethod
    def key(*content: Any) -> str:
        """SHA-256 of what was asked, as canonical JSON."""
        text = json.dumps(content, sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def get(self, key: str) -> float | None:
        """The remembered verdict; None when there is none or its file cannot be read as one."""
        try:
            value = json.loads(self._path(key).read_text(encoding="utf-8"))["value"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    def put(self, key: str, value: float) -> None:
        """Remember a verdict; the file appears in one step."""
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump({"value": value}, file)
        os.replace(draft, path)

    def _path(self, key: str) -> Path:
        """Where a key's file lies."""
        return self.folder / key[:2] / f"{key}.json"
