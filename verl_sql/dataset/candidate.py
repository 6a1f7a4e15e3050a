"""An example on its way from a reader to a decision."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from verl_sql.dataset.example import Example
from verl_sql.dataset.reasons import Action, Finding
from verl_sql.dataset.settings import Settings
from verl_sql.schema.restrict import Selection


@dataclass(frozen=True, slots=True)
class Candidate:
    """An example, with what has been found about it so far.

    Attributes:
        example: the example.
        findings: what speaks against it, each reason once.
        asked: (topic, answer) of what models were asked about it, for the report's counts.
        linked: what a model selected of its schema; None when none was asked or gave a usable reply.
    """

    example: Example
    findings: tuple[Finding, ...] = ()
    asked: tuple[tuple[str, str], ...] = ()
    linked: Selection | None = None

    def with_findings(self, more: Iterable[Finding]) -> "Candidate":
        """The same with more findings, each reason once."""
        known = {finding.reason for finding in self.findings}
        new = {finding.reason: finding for finding in more if finding.reason not in known}
        return replace(self, findings=(*self.findings, *new.values()))

    def with_answer(self, topic: str, answer: str, more: Iterable[Finding]) -> "Candidate":
        """The same after a model was asked about it."""
        return replace(self.with_findings(more), asked=(*self.asked, (topic, answer)))

    def dropping(self, settings: Settings) -> Finding | None:
        """The first finding that drops it under `settings`."""
        actions = settings.actions(self.example.split)
        return next((f for f in self.findings if actions[f.reason] is Action.DROP), None)
