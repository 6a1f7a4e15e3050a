"""From one record of a dataset's JSON to an Example: named fields, everything else kept in `details`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verl_sql.dataset.example import Example


class MissingField(ValueError):
    """A record lacks a field that its dataset's layout promises."""


@dataclass(frozen=True, slots=True)
class Fields:
    """Names under which a dataset keeps its fields; each is a tuple of alternatives, the first present one counts."""

    question: tuple[str, ...] = ("question",)
    gold_sql: tuple[str, ...] = ("SQL", "query", "sql")
    db_id: tuple[str, ...] = ("db_id",)
    evidence: tuple[str, ...] = ("evidence",)
    question_id: tuple[str, ...] = ("question_id",)
    difficulty: tuple[str, ...] = ("difficulty",)
    gold_chain: tuple[str, ...] = ("cocte",)
    ignored: tuple[str, ...] = ()


def to_example(record: Mapping[str, Any], fields: Fields, source: str, split: str, position: str) -> Example:
    """The example in one record.

    Args:
        record: the JSON object.
        fields: where its parts stand.
        source: the dataset's name.
        split: the split's name.
        position: the id of a record that has none of its own.

    Raises:
        MissingField: there is no question, gold query or database name.
    """
    used = {name for group in _groups(fields) for name in group} | set(fields.ignored)
    return Example(
        source=source,
        split=split,
        question_id=_optional(record, fields.question_id) or position,
        db_id=_required(record, fields.db_id, position),
        question=_required(record, fields.question, position),
        evidence=_optional(record, fields.evidence),
        gold_sql=_required(record, fields.gold_sql, position).rstrip("; \t\r\n"),
        gold_chain=_optional(record, fields.gold_chain),
        difficulty=_optional(record, fields.difficulty),
        details={key: value for key, value in record.items() if key not in used},
    )


def _groups(fields: Fields) -> tuple[tuple[str, ...], ...]:
    """The alternatives of every named field."""
    return (
        *(fields.question, fields.gold_sql, fields.db_id, fields.evidence),
        *(fields.question_id, fields.difficulty, fields.gold_chain),
    )


def _optional(record: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """The first of `names` that the record has, as trimmed text; nothing when it has none."""
    value = next((record[name] for name in names if record.get(name) is not None), "")
    return str(value).strip()


def _required(record: Mapping[str, Any], names: tuple[str, ...], position: str) -> str:
    """The first of `names` that the record has; it must be there."""
    if not any(record.get(name) is not None for name in names):
        raise MissingField(f"record {position} has no {' or '.join(names)}; it has {', '.join(record) or 'nothing'}")
    return _optional(record, names)
