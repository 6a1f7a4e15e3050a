"""Examples that somebody has found to be wrong, by id."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from verl_sql.dataset.example import Example
from verl_sql.dataset.reasons import Finding, Reason


class ErrataFilter:
    """Lists of known errors: name of the list -> ids of one split."""

    def __init__(self, lists: Mapping[str, Iterable[str | int]]) -> None:
        """Remember the ids as text."""
        self._lists = {name: frozenset(str(i) for i in ids) for name, ids in lists.items()}

    @classmethod
    def from_file(cls, file: str | Path, names: Iterable[str] | None = None) -> "ErrataFilter":
        """Read lists from a JSON object of name -> ids; keys that begin with `_` are comments.

        Args:
            file: the JSON file.
            names: which lists to use; all of them by default.

        Raises:
            KeyError: a name stands for no list.
        """
        content = json.loads(Path(file).read_text(encoding="utf-8"))
        lists = {name: ids for name, ids in content.items() if not name.startswith("_")}
        return cls({name: lists[name] for name in (names if names is not None else lists)})

    def findings(self, example: Example) -> list[Finding]:
        """One finding for each list that holds the example's id."""
        return [Finding(Reason.ERRATUM, name) for name, ids in self._lists.items() if example.question_id in ids]
