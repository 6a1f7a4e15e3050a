"""Text that comes from a database or an error message, made safe to stand inside a chat: data, never structure.

A policy reads what its queries returned. A cell that spells `<|im_end|>` would end the conversation, one that spells
`<tool_call>` would look like a call, and one that spells `<answer>…</answer>` would be read as the policy's answer by
whatever extracts it from the whole text. `neutral` takes such texts their meaning and leaves them readable: the
character that opens a marker becomes its escape, `\\u003c` for `<`. All text on its way from a database to a policy
goes through here (`cell_text`, `row_text`, `line_text`); the tests feed it real tokenizers.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import Any

CELL_WIDTH = 40
"""Characters of a cell that are shown."""
LINE_WIDTH = 300
"""Characters of an error message that are shown."""

_MARKER = re.compile(
    r"[<＜﹤](?=[^\s=>\d])"  # <|im_end|>, <tool_call>, </answer>, <｜User｜>, <s>, <think>; `a < b`, `<=`, `<5` stay
    r"|\[(?=/?(?:INST|SYS|TOOL|AVAILABLE|SYSTEM|gMASK|sMASK|@)|/)"  # [INST], [/INST], [TOOL_CALLS], [@BOS@]
    r"|`(?=``)|(?<=`)`|~(?=~~)|(?<=~~)~"  # fences
)
_INVISIBLE = frozenset({"Cc", "Cf", "Co", "Cs", "Zl", "Zp"})
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def neutral(text: str, tokens: Collection[str] = ()) -> str:
    """`text` on one line and without any text that a tokenizer, chat template, tool parser or extractor acts on.

    Control characters, line ends, invisible and bidirectional marks and lone surrogates (what undecodable bytes
    become) are written as escapes too: they would break a tokenizer or hide what stands there. Text without any of
    these is returned as it is, quotes, backslashes and non-ASCII letters included, so that it can be copied into SQL.

    Args:
        text: anything.
        tokens: the texts of the tokenizer's own special and added tokens, where it is at hand: none of them is in the
            result. `verl_sql.integration.special_tokens` reads them off a tokenizer.
    """
    safe = _MARKER.sub(lambda match: _escape(match.group()), text)
    if not safe.isascii() or not safe.isprintable():
        safe = "".join(_visible(char) for char in safe)
    return _begins(frozenset(tokens)).sub(lambda match: _escape(match.group()), safe) if tokens else safe


def cell_text(value: Any, width: int = CELL_WIDTH, tokens: Collection[str] = ()) -> str:
    """A cell as the SQL literal that a policy would write for it, cut at `width` characters, on one line and neutral.

    NULL, 12, 2.5, 'O''Brien', X'00ff'; a long text ends in `…` and tells its length.
    """
    if value is None:
        return "NULL"
    if isinstance(value, bytes | bytearray | memoryview):
        data = bytes(value)
        return f"X'{data[: width // 2].hex()}" + ("'" if len(data) <= width // 2 else f"…' ({len(data)} bytes)")
    if not isinstance(value, str):
        return neutral(str(value)[:width], tokens)
    shown = neutral(value[:width].replace("'", "''"), tokens)
    return f"'{shown}'" if len(value) <= width else f"'{shown}…' ({len(value)} characters)"


def row_text(row: Iterable[Any], width: int = CELL_WIDTH, tokens: Collection[str] = ()) -> str:
    """A row on one line: its cells as SQL literals, parted by ` | `; quotes keep a cell from forging another one."""
    return " | ".join(cell_text(cell, width, tokens) for cell in row)


def names_text(names: Sequence[str], width: int = CELL_WIDTH, tokens: Collection[str] = ()) -> str:
    """Column names on one line, parted by ` | `; a query may name a column anything: cut, neutral."""
    return " | ".join(neutral(name[:width], tokens).replace("|", "\\u007c") for name in names)


def line_text(text: str, width: int = LINE_WIDTH, tokens: Collection[str] = ()) -> str:
    """A message, say an error's, on one line, cut at `width` characters and neutral."""
    return neutral(text[:width], tokens) + ("…" if len(text) > width else "")


@lru_cache(maxsize=16)
def _begins(tokens: frozenset[str]) -> re.Pattern[str]:
    """Matches the first character of every token in a text, overlapping ones included."""
    found = "|".join(map(re.escape, sorted(token for token in tokens if token.strip())))
    return re.compile(f"(?={found})." if found else r"(?!)", re.DOTALL)


def _visible(char: str) -> str:
    """A character as it is, or its escape when it is a control, an invisible mark or no character at all."""
    return _escape(char) if unicodedata.category(char) in _INVISIBLE else char


def _escape(char: str) -> str:
    """The escape of one character."""
    if char in _SHORT:
        return _SHORT[char]
    code = ord(char)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
