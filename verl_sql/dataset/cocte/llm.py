"""Chains of CTEs written by an LLM: few-shot prompt, n samples a question; what holds is decided by execution.

The gold query and the schema go in, as in the paper (§4.1, Figure 7 is a picture there; the words are ours).
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from verl_sql.database.introspect import read_schema
from verl_sql.dataset.cocte.settings import SamplingSettings
from verl_sql.dataset.prompting import PROMPT_FOLDER
from verl_sql.generation.endpoint import EndpointSampler
from verl_sql.generation.sampler import Message, Prompt, Sampler, Sampling
from verl_sql.schema.ddl import render_ddl
from verl_sql.sqltext.chain import split_chain
from verl_sql.sqltext.extract import extract_answer

Asked = tuple[Path, Mapping[str, Any], str]
"""Database, `extra_info` (question and evidence are read), gold SQL."""


class ChainWriter:
    """Asks an LLM for chains.

    Args:
        settings: endpoint and sampling.
        sampler: takes the endpoint's place where completions come from elsewhere.
    """

    def __init__(self, settings: SamplingSettings, sampler: Sampler | None = None) -> None:
        """Nothing is sent yet."""
        self._sampler = sampler or EndpointSampler(
            settings.base_url or "", settings.model, concurrency=settings.concurrency, timeout=settings.timeout
        )
        self._sampling = Sampling(settings.samples, settings.temperature, max_tokens=settings.max_tokens)

    def write(self, asked: Sequence[Asked]) -> list[list[str]]:
        """For each question the SQL of its completions, each text once; what is no chain of CTEs is left out.

        Raises:
            SamplingError: the endpoint gave no completions.
        """
        prompts = [Prompt(tuple(conversion_messages(database, info, gold))) for database, info, gold in asked]
        replies = self._sampler.sample(prompts, self._sampling) if prompts else []
        found = ([extract_answer(reply.text).sql for reply in group] for group in replies)
        return [list(dict.fromkeys(sql for sql in group if sql and split_chain(sql).has_ctes)) for group in found]


def conversion_messages(database: Path, info: Mapping[str, Any], gold: str) -> list[Message]:
    """The chat that asks for one chain: rules, three worked examples, then the query."""
    text = _template().render(schema=_ddl(database), question=info["question"], evidence=info["evidence"], gold=gold)
    system, *turns = (part.strip() for part in text.split("\n=====\n"))
    roles = ("user", "assistant")
    chat = [{"role": roles[i % 2], "content": turn} for i, turn in enumerate(turns)]
    return [{"role": "system", "content": system}, *chat]


@cache
def _template() -> jinja2.Template:
    """The prompt; texts are inserted as they are."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    return environment.from_string((PROMPT_FOLDER / "cocte_convert.jinja").read_text(encoding="utf-8"))


def _ddl(database: Path) -> str:
    """The database's tables as CREATE TABLE statements."""
    return render_ddl(read_schema(database))
