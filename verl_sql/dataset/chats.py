"""Chats from templates: a rules part and a data part, the data as JSON strings that cannot be mistaken for rules."""

import json
from functools import cache
from importlib import resources

import jinja2
from markupsafe import Markup

from verl_sql.generation.sampler import Message
from verl_sql.sqltext.quoting import neutral

DIVIDER = "\n=====\n"


def chat_of(template: str, **values: str) -> tuple[Message, ...]:
    """System and user message of `verl_sql/prompts/<template>.jinja`, whose two parts stand around a line `=====`."""
    system, user = _template(template).render(values).split(DIVIDER, 1)
    return {"role": "system", "content": system.strip()}, {"role": "user", "content": user.strip()}


def as_data(text: str) -> Markup:
    """`text` as one line of JSON string in which no mark of a chat template stands raw."""
    return Markup(neutral(json.dumps(text, ensure_ascii=False)))


@cache
def _template(name: str) -> jinja2.Template:
    """The template; autoescape is on so that a value that bypasses `as_data` would show."""
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters["data"] = as_data
    return environment.from_string(
        resources.files("verl_sql.prompts").joinpath(f"{name}.jinja").read_text(encoding="utf-8")
    )
