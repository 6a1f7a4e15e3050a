"""Which of a column's values M-Schema shows as examples (algorithms of the reference code, in a fixed order)."""

import re
import sqlite3
from collections.abc import Sequence
from typing import Any

from verl_sql.database.introspect import Column, distinct_values

SAMPLED = 5
SHOWN = 3
LONG = 20
TOO_LONG = 50
_PRIVATE = re.compile(
    r"\s*[\w.+-]+@[\w-]+(?:\.[\w-]+)+\s*\Z|.*?(?:(?:https?|ftp)://|\bwww\.)", re.IGNORECASE | re.DOTALL
)
_DATE_TYPES = frozenset({"DATE", "TIME", "DATETIME", "TIMESTAMP"})
_NUMERIC_TYPES = frozenset({"DECIMAL", "NUMERIC", "FLOAT"})


def column_examples(connection: sqlite3.Connection, table: str, column: Column, shown: int = SHOWN) -> list[str]:
    """The example texts of one column, at most `shown`, the same for the same file every time.

    Of the first five distinct values the first that are neither NULL nor empty are taken. None is shown if one
    of them is an e-mail address, a URL, a blob or longer than 50 characters; only the first if one is longer than 20
    or the column holds dates.
    """
    return choose_examples(distinct_values(connection, table, column.name, SAMPLED), column.type_name, shown)


def choose_examples(values: Sequence[Any], type_name: str, count: int = SHOWN) -> list[str]:
    """The rule of `column_examples` applied to values already sampled."""
    shown = [value for value in values if value is not None and value != ""][:count]
    texts = [_text(value, type_name) for value in shown]
    if not texts or any(isinstance(value, bytes) for value in shown) or any(_is_private(text) for text in texts):
        return []
    longest = max(len(text) for text in texts)
    if longest > TOO_LONG:
        return []
    return texts[:1] if longest > LONG or type_name in _DATE_TYPES else texts


def _text(value: Any, type_name: str) -> str:
    """A value as M-Schema writes it: whole numbers in decimal columns as `98.0`."""
    return str(float(value)) if isinstance(value, int) and type_name in _NUMERIC_TYPES else str(value)


def _is_private(text: str) -> bool:
    """Whether a value is an e-mail address or holds a URL."""
    return ("@" in text or "/" in text or "." in text) and _PRIVATE.match(text) is not None
