"""What language models are asked about a batch of candidates: whether the gold is right, and which schema items count.

Only candidates that nothing else drops are asked about, and only where the answer is used.
"""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from verl_sql.dataset.candidate import Candidate
from verl_sql.dataset.example import TEXT2SQL
from verl_sql.dataset.reasons import Action, Finding, Reason
from verl_sql.dataset.schema_texts import LINKING, SchemaTexts
from verl_sql.dataset.settings import Settings
from verl_sql.generation.asked import Unusable

if TYPE_CHECKING:
    from verl_sql.dataset.filters.consensus import ConsensusFilter
    from verl_sql.dataset.model_linking import Linked, ModelLinker

Located = tuple[Path | None, Candidate]


class Consultation:
    """Asks the models that the settings name; without any, candidates pass as they are."""

    def __init__(self, settings: Settings, texts: SchemaTexts) -> None:
        """Connect to the models.

        Raises:
            AskingError: a model is not there.
        """
        self.settings, self.texts = settings, texts
        self._consensus: ConsensusFilter | None = None
        self._linker: ModelLinker | None = None
        if settings.judges:  # the client behind both takes a second to import
            from verl_sql.dataset.filters import consensus

            self._consensus = consensus.ConsensusFilter(*settings.judges, settings.replies)
        if settings.linker:
            from verl_sql.dataset import model_linking

            self._linker = model_linking.ModelLinker(settings.linker, settings.replies)

    def consult(self, located: Sequence[Located]) -> list[Candidate]:
        """The candidates with the models' answers, in their order.

        Raises:
            AskingError: an endpoint is at fault.
        """
        databases = [database for database, _ in located]
        candidates = self._judged(databases, [candidate for _, candidate in located])
        return self._linked(databases, candidates)

    def _judged(self, databases: Sequence[Path | None], candidates: list[Candidate]) -> list[Candidate]:
        """Golds that both judges call wrong are found out."""
        if self._consensus is None:
            return candidates
        asked = {
            i: text
            for i, candidate in enumerate(candidates)
            if self._wants_judging(candidate) and (text := self._whole(databases[i], candidate)) is not None
        }
        judgements = self._consensus.judge([(candidates[i].example, text) for i, text in asked.items()])
        for i, judgement in zip(asked, judgements, strict=True):
            candidates[i] = candidates[i].with_answer("consensus", judgement.word, judgement.findings)
        return candidates

    def _linked(self, databases: Sequence[Path | None], candidates: list[Candidate]) -> list[Candidate]:
        """Candidates of splits whose schemas are linked get the model's selection."""
        if self._linker is None:
            return candidates
        asked = {}
        for i, candidate in enumerate(candidates):
            text = self._whole(databases[i], candidate) if self._wants_linking(candidate) else None
            schema = self.texts.schema(databases[i], candidate.example) if text is not None else None
            if text is not None and schema is not None:
                asked[i] = (candidate.example, schema, text)
        for i, answer in zip(asked, self._linker.link(list(asked.values())), strict=True):
            candidates[i] = _with_selection(candidates[i], answer)
        return candidates

    def _wants_judging(self, candidate: Candidate) -> bool:
        """Whether a judgement would change anything."""
        ignored = self.settings.actions(candidate.example.split)[Reason.CONSENSUS] is Action.IGNORE
        return not ignored and candidate.example.ability == TEXT2SQL and candidate.dropping(self.settings) is None

    def _wants_linking(self, candidate: Candidate) -> bool:
        """Whether a selection would be shown."""
        return self.texts.scope(candidate.example.split) in LINKING and candidate.dropping(self.settings) is None

    def _whole(self, database: Path | None, candidate: Candidate) -> str | None:
        """The whole schema as text; None where there is none, which is found out again when the prompt is rendered."""
        try:
            return self.texts.whole(database, candidate.example)
        except (OSError, sqlite3.DatabaseError):
            return None


def _with_selection(candidate: Candidate, answer: "Linked | Unusable") -> Candidate:
    """The candidate with a model's selection, or with the finding that there is none."""
    if isinstance(answer, Unusable):
        return candidate.with_answer("linking", "unusable", [Finding(Reason.UNLINKED, answer.why)])
    unknown = [Finding(Reason.UNKNOWN_NAMES, ", ".join(answer.unknown))] if answer.unknown else []
    return replace(candidate.with_answer("linking", "linked", unknown), linked=answer.selection)
