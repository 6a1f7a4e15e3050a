"""The folder of an inference run: what was sampled, what was judged, what it took; files grow line by line.

| file | what |
|---|---|
| `settings.json` | what completions and candidates depend on, so that a run is continued only by its like |
| `completions.jsonl` | one line a question: the greedy completion first, then the samples |
| `candidates.jsonl` | one line a candidate, executed and scored (`verl_sql.evaluation.candidates`) |
| `journal.jsonl` | seconds by stage and counts of work, appended by every part |
| `summary.json`, `accuracy_over_n.png`, `latency.json`, `latency.png` | the results |

A run that was killed goes on after the last question that is whole; what stands after that is cut off.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from verl_sql.evaluation.candidates import Answered, append_candidates
from verl_sql.generation.sampler import Completion

SAMPLED, JUDGED = "sampled", "judged"
"""The two parts of settings.json: what completions depend on, and what candidates depend on beside them."""


class SettingsDifferError(ValueError):
    """The folder holds results of other settings; the message is one sentence that says which and what to do."""


class InferenceFolder:
    """One folder.

    Args:
        path: where it is; made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        """Nothing is read yet."""
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.completions = path / "completions.jsonl"
        self.candidates = path / "candidates.jsonl"
        self.summary = path / "summary.json"
        self._settings = path / "settings.json"
        self._journal = path / "journal.jsonl"

    def settings(self) -> dict[str, dict[str, Any]]:
        """What the results depend on; empty in a new folder."""
        return dict(json.loads(self._settings.read_text(encoding="utf-8"))) if self._settings.is_file() else {}

    def continue_with(self, part: str, settings: Mapping[str, Any]) -> None:
        """Note the settings of a part, or see that results that are there have the same.

        Args:
            part: SAMPLED or JUDGED.
            settings: plain values.

        Raises:
            SettingsDifferError: results of other settings are there.
        """
        file = self.completions if part == SAMPLED else self.candidates
        known, told = self.settings(), json.loads(json.dumps(settings))
        if file.is_file() and file.stat().st_size and (differ := _differences(known.get(part, {}), told)):
            raise SettingsDifferError(
                f"{file} was made with another {', '.join(differ)}; delete it to begin anew, or name another folder"
            )
        write_json(self._settings, known | {part: told})

    def sampled(self, keys: Sequence[str], size: int) -> list[list[Completion]]:
        """The completions of the first questions, `size` each; an unfinished end of the file is cut off.

        Raises:
            SettingsDifferError: they are of other questions.
        """
        rows = _whole_lines(self.completions)
        self._check_keys(self.completions, [row["key"] for row in rows], keys)
        if any(len(row["completions"]) != size for row in rows):
            raise SettingsDifferError(f"{self.completions} holds another number of completions a question; delete it")
        return [[Completion(text, finished) for text, finished in row["completions"]] for row in rows]

    def add_completions(self, keys: Sequence[str], groups: Sequence[Sequence[Completion]]) -> None:
        """Append questions, greedy completion first."""
        lines = (
            {"key": key, "completions": [[c.text, c.finished] for c in group]}
            for key, group in zip(keys, groups, strict=True)
        )
        _append(self.completions, lines)

    def judged(self, keys: Sequence[str], size: int) -> int:
        """How many questions have all of their `size` candidates; what follows the last whole one is cut off.

        Raises:
            SettingsDifferError: they are of other questions.
        """
        rows = _whole_lines(self.candidates)
        done = len(rows) // size
        self._check_keys(self.candidates, [row["key"] for row in rows[::size]][:done], keys)
        if len(rows) % size:
            _cut_after(self.candidates, done * size)
        return done

    def add_candidates(self, answered: Iterable[Answered]) -> None:
        """Append judged questions."""
        append_candidates(self.candidates, answered)

    def add_seconds(self, **seconds: float) -> None:
        """Note what stages took."""
        _append(self._journal, [{"seconds": {name: round(value, 4) for name, value in seconds.items()}}])

    def add_work(self, **counts: int) -> None:
        """Note how much was done."""
        _append(self._journal, [{"work": counts}])

    def totals(self, kind: str) -> dict[str, float]:
        """Sums over all parts and tries of the numbers of one kind, `seconds` or `work`, by name."""
        found: dict[str, float] = {}
        for row in _whole_lines(self._journal):
            for name, value in row.get(kind, {}).items():
                found[name] = found.get(name, 0) + value
        return found

    def _check_keys(self, file: Path, found: Sequence[str], wanted: Sequence[str]) -> None:
        if list(found) != list(wanted[: len(found)]):
            raise SettingsDifferError(f"{file} holds other questions; delete it to begin anew, or name another folder")


def fingerprint(name: str | Path) -> str:
    """A digest of a file, or of the weights in a folder; empty for what is neither (a name on a hub, an address)."""
    path = Path(name)
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path] if path.is_file() else []
    digest = hashlib.sha256()
    for file in files:
        with file.open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()[:16] if files else ""


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file whole or not at all."""
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(partial, path)


def _differences(known: Mapping[str, Any], told: Mapping[str, Any]) -> list[str]:
    return sorted(name for name in {*known, *told} if known.get(name) != told.get(name))


def _append(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("a", encoding="utf-8") as sink:
        sink.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    """The lines that end in a line feed; what a kill left after them is cut off."""
    if not path.is_file():
        return []
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        os.truncate(path, end)
    return [json.loads(line) for line in content[:end].split(b"\n") if line]


def _cut_after(path: Path, lines: int) -> None:
    """Keep the first so many lines."""
    with path.open("rb") as file:
        kept = sum(len(next(file)) for _ in range(lines))
    os.truncate(path, kept)
