"""Examples in, decided examples out: run the golds, look for faults, render the prompt, keep or drop."""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from verl_sql.database.catalog import Catalog, DatabaseNotFound
from verl_sql.database.execution import Execution
from verl_sql.database.executor import Executor, Pair
from verl_sql.dataset.example import Example
from verl_sql.dataset.filters.gold import gold_findings
from verl_sql.dataset.filters.ties import TieProbe, tie_probes
from verl_sql.dataset.filters.volatile import volatile_findings
from verl_sql.dataset.parquet import Message
from verl_sql.dataset.prompting import PromptTemplate, Tokenize, character_count, token_counter
from verl_sql.dataset.reasons import Action, Finding, Reason
from verl_sql.dataset.settings import Settings
from verl_sql.schema.render import schema_text


@dataclass(frozen=True, slots=True)
class Candidate:
    """An example on its way, with what has been found about it so far."""

    example: Example
    findings: tuple[Finding, ...] = ()

    def with_findings(self, more: Iterable[Finding]) -> "Candidate":
        """The same with more findings, each reason once."""
        known = {finding.reason for finding in self.findings}
        new = {finding.reason: finding for finding in more if finding.reason not in known}
        return replace(self, findings=(*self.findings, *new.values()))


@dataclass(frozen=True, slots=True)
class Prepared:
    """A decided example.

    Attributes:
        example: the example; a kept one's `details["flags"]` names the reasons it is flagged for.
        prompt: its chat messages; None when it is dropped.
        prompt_length: their length, in tokens or characters; 0 when dropped before it was measured.
        findings: everything found that is not ignored.
        dropped: the finding that drops it, or None.
    """

    example: Example
    prompt: list[Message] | None
    prompt_length: int
    findings: tuple[Finding, ...]
    dropped: Finding | None


class Preparation:
    """Decides batches of examples under fixed settings.

    Args:
        settings: what to do.
        catalog: where the databases are; None for datasets that have none.
        executor: runs the golds.
    """

    def __init__(self, settings: Settings, catalog: Catalog | None, executor: Executor) -> None:
        """Load the template and the tokenizer."""
        self.settings = settings
        self.catalog = catalog
        self.executor = executor
        self.template = PromptTemplate(settings.template)
        self.measure: Tokenize = token_counter(settings.tokenizer) if settings.tokenizer else character_count

    def decide(self, candidates: Sequence[Candidate]) -> list[Prepared]:
        """Decide one batch; the order stays."""
        located = [(self._locate(c.example), c) for c in candidates]
        checked = self._check_golds(located)
        return [self._finish(database, candidate) for (database, _), candidate in zip(located, checked, strict=True)]

    def _locate(self, example: Example) -> Path | None:
        """The example's database, None when there is none."""
        if self.catalog is None:
            return None
        try:
            return self.catalog.path(example.db_id)
        except DatabaseNotFound:
            return None

    def _check_golds(self, located: Sequence[tuple[Path | None, Candidate]]) -> list[Candidate]:
        """The candidates with what their golds' text and execution say."""
        runnable = [(path, c.example.gold_sql) for path, c in located if path is not None]
        executions = iter(self.executor.execute_many(runnable, timeout=self.settings.timeout))
        ran = [(path, next(executions) if path is not None else None, c) for path, c in located]
        ties = self._find_ties(ran)
        return [
            c.with_findings([*self._gold(execution), *volatile_findings(c.example.gold_sql), *tied])
            for (_, execution, c), tied in zip(ran, ties, strict=True)
        ]

    def _gold(self, execution: Execution | None) -> list[Finding]:
        """Findings about an executed gold; none where the dataset has no databases."""
        if execution is not None:
            return gold_findings(execution, self.settings.slow_seconds)
        return [] if self.catalog is None else [Finding(Reason.NO_DATABASE)]

    def _find_ties(self, ran: Sequence[tuple[Path | None, Execution | None, Candidate]]) -> list[list[Finding]]:
        """For each candidate, the LIMITs of its gold whose cut is not determined."""
        probes: list[tuple[int, TieProbe]] = []
        pairs: list[Pair] = []
        for number, (path, execution, candidate) in enumerate(ran):
            if path is not None and execution is not None and execution.ok:
                for probe in tie_probes(candidate.example.gold_sql, len(execution.columns)):
                    probes.append((number, probe))
                    pairs.append(Pair(path, probe.upwards, probe.downwards))
        found: list[list[Finding]] = [[] for _ in ran]
        compared = self.executor.compare_many(pairs, comparators=("bag",), timeout=self.settings.timeout)
        for (number, probe), comparison in zip(probes, compared, strict=True):
            if comparison.gold.ok and comparison.pred.ok and not comparison.values["bag"]:
                found[number].append(Finding(probe.reason))
        return found

    def _finish(self, database: Path | None, candidate: Candidate) -> Prepared:
        """Drop the candidate, or render its prompt and measure it."""
        if self._dropping(candidate):
            return self._decided(candidate, None, 0)
        try:
            schema = self._schema(database, candidate.example)
        except (OSError, sqlite3.DatabaseError) as error:
            return self._decided(candidate.with_findings([Finding(Reason.UNFIT_SCHEMA, str(error))]), None, 0)
        prompt = self.template.messages(candidate.example, schema)
        length = self.measure(prompt)
        return self._decided(candidate.with_findings(self._length_findings(length)), prompt, length)

    def _schema(self, database: Path | None, example: Example) -> str:
        """The schema text of an example: its database's, else what the dataset gives."""
        if database is None:
            if example.schema_text:
                return example.schema_text
            raise FileNotFoundError(f"no database {example.db_id!r} and no schema in the dataset")
        s = self.settings
        return schema_text(database, s.form, s.descriptions, s.value_descriptions, example.db_id, s.examples)

    def _length_findings(self, length: int) -> list[Finding]:
        """A finding when the prompt is too long."""
        s = self.settings
        limit = s.max_prompt_tokens if s.tokenizer else s.max_prompt_characters
        if limit is None or length <= limit:
            return []
        return [Finding(Reason.LONG_PROMPT, f"{length} {self.unit}, at most {limit}")]

    @property
    def unit(self) -> str:
        """What prompts are measured in."""
        return "tokens" if self.settings.tokenizer else "characters"

    def _dropping(self, candidate: Candidate) -> Finding | None:
        """The first finding that drops the candidate."""
        actions = self.settings.actions(candidate.example.split)
        return next((f for f in candidate.findings if actions[f.reason] is Action.DROP), None)

    def _decided(self, candidate: Candidate, prompt: list[Message] | None, length: int) -> Prepared:
        """The decision about a candidate; without a prompt it can only be dropped."""
        actions = self.settings.actions(candidate.example.split)
        findings = tuple(f for f in candidate.findings if actions[f.reason] is not Action.IGNORE)
        dropped = self._dropping(candidate) or (candidate.findings[-1] if prompt is None else None)
        example = candidate.example
        if dropped is None and findings:
            flags = sorted({str(f.reason) for f in findings})
            example = replace(example, details={**example.details, "flags": flags})
        return Prepared(example, None if dropped else prompt, length, findings, dropped)


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
    )
