"""Large JSON arrays and JSON-lines files, one record in memory at a time."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CHUNK = 1 << 20
_SKIPPED = " \t\r\n,"


def read_records(path: str | Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON array file, or of a file with one object a line.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: the file is not such JSON; the message names the file and the place.
    """
    file = Path(path)
    decoder = json.JSONDecoder()
    with file.open(encoding="utf-8-sig") as stream:
        buffer, at, seen = "", 0, 0
        while True:
            at = _skip(buffer, at, first=seen == 0)
            try:
                if at >= len(buffer) or buffer[at] == "]":
                    raise json.JSONDecodeError("no value here", buffer, at)
                record, end = decoder.raw_decode(buffer, at)
            except json.JSONDecodeError:
                more = stream.read(max(CHUNK, len(buffer) - at))
                if not more:
                    _check_end(file, buffer[at:], seen)
                    return
                buffer, at = buffer[at:] + more, 0
                continue
            at, seen = end, seen + 1
            yield _as_object(record, file, seen)


def _skip(buffer: str, at: int, first: bool) -> int:
    """The position after separators, and before the first record after the array's opening bracket."""
    while at < len(buffer) and (buffer[at] in _SKIPPED or (first and buffer[at] == "[")):
        at += 1
    return at


def _check_end(file: Path, rest: str, seen: int) -> None:
    """Refuse a file whose text breaks off."""
    if rest.strip(_SKIPPED) not in ("", "]"):
        raise ValueError(f"{file}: not JSON after record {seen}: {rest[:60]!r}")


def _as_object(record: Any, file: Path, number: int) -> dict[str, Any]:
    """The record, if it is an object."""
    if not isinstance(record, dict):
        raise ValueError(f"{file}: record {number} is no object but {type(record).__name__}")
    return record
