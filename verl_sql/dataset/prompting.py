"""Render a training prompt: schema, question and evidence through a template of `verl_sql/prompts` into chat messages.

A template has a block `user` and may have a block `system`. Texts are inserted as they are: a prompt is not HTML, and
braces in a question are no template code.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path

import jinja2

from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import Message

PROMPT_FOLDER = Path(__file__).parent.parent / "prompts"
ROLES = ("system", "user")
Tokenize = Callable[[list[Message]], int]


class PromptTemplate:
    """One template, by name (a file of `verl_sql/prompts`) or by path.

    Raises:
        FileNotFoundError: there is no such template; the message lists those there are.
        ValueError: it has no block `user`.
    """

    def __init__(self, name: str) -> None:
        """Load and compile the template."""
        file = Path(name) if name.endswith(".jinja") else PROMPT_FOLDER / f"{name}.jinja"
        if not file.is_file():
            raise FileNotFoundError(f"no prompt template {name!r}; there are {', '.join(template_names())}")
        self.name = name
        self._template = _environment().from_string(file.read_text(encoding="utf-8"))
        if "user" not in self._template.blocks:
            raise ValueError(f"prompt template {file} has no block 'user'")

    def messages(self, example: Example, schema: str) -> list[Message]:
        """The chat messages of one example.

        Raises:
            jinja2.UndefinedError: the template uses a name that is not given.
        """
        values = {
            "schema": schema,
            "question": example.question,
            "evidence": example.evidence,
            "db_id": example.db_id,
            "details": example.details,
        }
        return [{"role": role, "content": self._block(role, values)} for role in ROLES if role in self._template.blocks]

    def _block(self, role: str, values: Mapping[str, object]) -> str:
        """One block as text."""
        return "".join(self._template.blocks[role](self._template.new_context(dict(values)))).strip()


def template_names() -> list[str]:
    """Names of the bundled templates that have a block `user`."""
    return sorted(f.stem for f in PROMPT_FOLDER.glob("*.jinja") if "block user" in f.read_text(encoding="utf-8"))


def token_counter(model: str) -> Tokenize:
    """A function that counts a chat's tokens, the generation prompt among them, with a model's own tokenizer.

    Args:
        model: a folder or a hub name that transformers' AutoTokenizer reads.

    Raises:
        ImportError: transformers is not installed.
        OSError: there is no such tokenizer.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)

    def count(messages: list[Message]) -> int:
        text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        return len(tokenizer(text, add_special_tokens=False)["input_ids"])

    return count


def character_count(messages: list[Message]) -> int:
    """Characters of a chat's contents."""
    return sum(len(message["content"]) for message in messages)


@lru_cache(maxsize=1)
def _environment() -> jinja2.Environment:
    """The environment of prompt templates: a missing name is an error, nothing is escaped."""
    return jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False, keep_trailing_newline=False)
