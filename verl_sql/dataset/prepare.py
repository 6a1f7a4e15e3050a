"""Examples in, decided examples out: run the golds, look for faults, render the prompt, keep or drop."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from verl_sql.database.catalog import Catalog, DatabaseNotFound
from verl_sql.database.executor import Executor
from verl_sql.database.introspect import DatabaseSchema
from verl_sql.dataset.candidate import Candidate
from verl_sql.dataset.consulting import Consultation
from verl_sql.dataset.example import TEXT2SQL, Example
from verl_sql.dataset.filters.gold_check import GoldCheck
from verl_sql.dataset.parquet import Message
from verl_sql.dataset.prompting import PromptTemplate, Tokenize, character_count, token_counter
from verl_sql.dataset.reasons import Action, Finding, Reason
from verl_sql.dataset.schema_texts import SchemaTexts
from verl_sql.dataset.settings import Settings
from verl_sql.sqltext.complexity import complexity


@dataclass(frozen=True, slots=True)
class Prepared:
    """A decided example.

    Attributes:
        example: the example; a kept one's `details["flags"]` names the reasons it is flagged for, and its
            difficulty is the complexity of its gold where the dataset gives none.
        prompt: its chat messages; None when it is dropped.
        prompt_length: their length, in tokens or characters; 0 when dropped before it was measured.
        findings: everything found that is not ignored.
        dropped: the finding that drops it, or None.
        asked: (topic, answer) of what models were asked about it.
    """

    example: Example
    prompt: list[Message] | None
    prompt_length: int
    findings: tuple[Finding, ...]
    dropped: Finding | None
    asked: tuple[tuple[str, str], ...] = ()


class Preparation:
    """Decides batches of examples under fixed settings.

    Args:
        settings: what to do.
        catalog: where the databases are; None for datasets that have none.
        executor: runs the golds.
        backwards: runs them with `Limits(backwards=True)`.
        schemas: db_id -> schema, from a `tables.json`, for questions whose database is not there.
    """

    def __init__(
        self,
        settings: Settings,
        catalog: Catalog | None,
        executor: Executor,
        backwards: Executor,
        schemas: Mapping[str, DatabaseSchema] | None = None,
    ) -> None:
        """Load the template and the tokenizer, connect to the models.

        Raises:
            AskingError: a model is not there.
        """
        self.settings = settings
        self.catalog = catalog
        known = schemas or {}
        self.golds = GoldCheck(executor, backwards, settings.timeout, settings.slow_seconds, known)
        self.texts = SchemaTexts(settings, known)
        self.consultation = Consultation(settings, self.texts)
        self.template = PromptTemplate(settings.template)
        self.measure: Tokenize = token_counter(settings.tokenizer) if settings.tokenizer else character_count

    def decide(self, candidates: Sequence[Candidate]) -> list[Prepared]:
        """Decide one batch; the order stays.

        Raises:
            AskingError: a model's endpoint is at fault.
        """
        databases = [self._locate(c.example) for c in candidates]
        found = self.golds.findings([(d, c.example) for d, c in zip(databases, candidates, strict=True)])
        checked = [c.with_findings(findings) for c, findings in zip(candidates, found, strict=True)]
        consulted = self.consultation.consult(list(zip(databases, checked, strict=True)))
        return [self._finish(database, candidate) for database, candidate in zip(databases, consulted, strict=True)]

    def _locate(self, example: Example) -> Path | None:
        """The example's database, None when there is none."""
        if self.catalog is None:
            return None
        try:
            return self.catalog.path(example.db_id)
        except DatabaseNotFound:
            return None

    def _finish(self, database: Path | None, candidate: Candidate) -> Prepared:
        """Drop the candidate, or render its prompt and measure it."""
        if candidate.dropping(self.settings):
            return self._decided(candidate, None, 0)
        try:
            schema = self.texts.shown(database, candidate.example, candidate.linked)
        except (OSError, sqlite3.DatabaseError) as error:
            return self._decided(candidate.with_findings([Finding(Reason.UNFIT_SCHEMA, str(error))]), None, 0)
        prompt = self.template.messages(candidate.example, schema)
        length = self.measure(prompt)
        return self._decided(candidate.with_findings(self._length_findings(length)), prompt, length)

    def _length_findings(self, length: int) -> list[Finding]:
        """A finding when the prompt is too long."""
        s = self.settings
        limit = s.max_prompt_tokens if s.tokenizer else s.max_prompt_characters
        if limit is None or length <= limit:
            return []
        return [Finding(Reason.LONG_PROMPT, f"{length} {s.unit}, at most {limit}")]

    def _decided(self, candidate: Candidate, prompt: list[Message] | None, length: int) -> Prepared:
        """The decision about a candidate; without a prompt it can only be dropped."""
        actions = self.settings.actions(candidate.example.split)
        findings = tuple(f for f in candidate.findings if actions[f.reason] is not Action.IGNORE)
        dropped = candidate.dropping(self.settings) or (candidate.findings[-1] if prompt is None else None)
        example = candidate.example
        if dropped is None and not example.difficulty and example.ability == TEXT2SQL:
            example = replace(example, difficulty=str(complexity(example.gold_sql)))
        if dropped is None and findings:
            flags = sorted({str(f.reason) for f in findings})
            example = replace(example, details={**example.details, "flags": flags})
        return Prepared(example, None if dropped else prompt, length, findings, dropped, candidate.asked)


def to_json(prepared: Prepared) -> str:
    """One line of JSON that `from_json` reads back."""
    e = prepared.example
    fields: dict[str, Any] = {name: getattr(e, name) for name in Example.__dataclass_fields__ if name != "schema_text"}
    return json.dumps(
        {
            "example": fields,
            "prompt": prepared.prompt,
            "prompt_length": prepared.prompt_length,
            "findings": [[f.reason, f.detail] for f in prepared.findings],
            "asked": prepared.asked,
            "dropped": [prepared.dropped.reason, prepared.dropped.detail] if prepared.dropped else None,
        },
        ensure_ascii=False,
    )


def from_json(line: str) -> Prepared:
    """A Prepared from a line of `to_json`."""
    content = json.loads(line)
    dropped = content["dropped"]
    return Prepared(
        Example(**content["example"]),
        content["prompt"],
        content["prompt_length"],
        tuple(Finding(Reason(reason), detail) for reason, detail in content["findings"]),
        Finding(Reason(dropped[0]), dropped[1]) if dropped else None,
        tuple((topic, answer) for topic, answer in content["asked"]),
    )
