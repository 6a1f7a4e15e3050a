"""What the judge is asked. The policy's SQL goes in as data: one JSON string on one line, without its comments.

A JSON string cannot be closed from inside, and nothing in it looks like the chat template's own marks: `<|…|>`, tags
and `[INST]` are written with escapes. That is tested on the prompt that leaves; whether a judge model obeys a sentence
inside the string is a matter of that model.
"""

import json
import re
import unicodedata
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import resources

import jinja2
from markupsafe import Markup

from verl_sql.sqltext.tokens import without_comments

MAX_CHARS = 8000
"""Longer SQL is cut, and the cut is marked."""
_MARKS = re.compile(r"<(?=[A-Za-z/|!_])|\[(?=/?(?:INST|SYS))", re.IGNORECASE)
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class JudgeKind(StrEnum):
    """What the judge is asked for."""

    SCORE = "score"
    """A score in [0, 1] (Reasoning-SQL)."""
    GRADE = "grade"
    """A class from `Very bad` to `Excellent` (Sparks of Tabular Reasoning, B.4)."""
    CHANGES = "changes"
    """The number of changes needed (Sparks of Tabular Reasoning, B.3)."""


@dataclass(frozen=True, slots=True)
class JudgeQuestion:
    """One prediction to judge.

    Attributes:
        kind: what is asked for.
        pred: the policy's SQL.
        gold: the gold SQL.
        question: the question in words, possibly empty.
        schema: the database's tables and columns, possibly empty.
    """

    kind: JudgeKind
    pred: str
    gold: str
    question: str = ""
    schema: str = ""

    def messages(self) -> list[dict[str, str]]:
        """The chat that leaves: the rules as system message, the data as user message."""
        system, user = (
            _template(self.kind)
            .render(pred=without_comments(self.pred), gold=self.gold, question=self.question, schema=self.schema)
            .split("\n=====\n", 1)
        )
        return [{"role": "system", "content": system.strip()}, {"role": "user", "content": user.strip()}]


def as_data(text: str) -> Markup:
    """`text` as one line of JSON string in which no template mark, control or invisible character stands raw."""
    cut = text if len(text) <= MAX_CHARS else text[:MAX_CHARS] + " …(cut)"
    quoted = json.dumps(cut, ensure_ascii=False)
    quoted = _MARKS.sub(lambda match: _escape(match.group()), quoted)
    return Markup("".join(_escape(c) if unicodedata.category(c) in _HIDDEN else c for c in quoted))


def _escape(char: str) -> str:
    """A character as JSON's `\\uXXXX`, in two halves beyond the basic plane."""
    return json.dumps(char)[1:-1] if not char.isascii() else f"\\u{ord(char):04x}"


@cache
def _template(kind: JudgeKind) -> jinja2.Template:
    """The prompt of a kind; autoescape is on so that a value that bypasses `as_data` would show."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters["data"] = as_data
    source = resources.files("verl_sql.prompts").joinpath(f"judge_{kind}.jinja").read_text(encoding="utf-8")
    return environment.from_string(source)
