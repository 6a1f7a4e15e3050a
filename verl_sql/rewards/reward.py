"""A paper's reward as a table of terms, and the path every completion walks through it.

completion -> answer -> execution beside the gold -> terms -> weighted sum -> Verdict. Nothing the policy writes makes
it raise; a database that cannot be found, an option nobody knows and, by configuration, a judge without a verdict do.
"""

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from verl_sql.database.catalog import resolve_database
from verl_sql.database.execution import Comparison
from verl_sql.database.executor import shared_executor
from verl_sql.rewards.execution import is_right, outcome_of
from verl_sql.rewards.judge.asking import awith_judgement, with_judgement
from verl_sql.rewards.judge.prompts import JudgeKind
from verl_sql.rewards.known_golds import aknown_failure, known_failure
from verl_sql.rewards.nonempty import nonempty
from verl_sql.rewards.sample import Attempt, Sample
from verl_sql.rewards.settings import Settings, merged_weights
from verl_sql.rewards.verdict import Outcome, Verdict
from verl_sql.sqltext.extract import Answer, AnswerStyle, extract_answer

log = logging.getLogger(__name__)

Value = Callable[[Sample], float]
FindAttempts = Callable[[str, Answer, Mapping[str, Any]], Sequence[str]]
OwnText = Callable[[str, Mapping[str, Any]], str]


def only_answer(completion: str, answer: Answer, extra_info: Mapping[str, Any]) -> Sequence[str]:
    """The attempts of a single-turn completion: its answer alone, empty when there is none."""
    return (answer.sql or "",)


def whole_text(completion: str, extra_info: Mapping[str, Any]) -> str:
    """A single-turn completion is the policy's own text from end to end."""
    return completion


def executed(sample: Sample) -> float:
    """1 when the prediction ran."""
    return float(bool(sample.sql) and sample.pred.ok)


def strict(sample: Sample) -> float:
    """1 when the prediction is right as a bag, duplicates counted: what a set comparison may hide."""
    return float(is_right(sample.final.comparison, "bag", sample.sql))


_NO_VERDICT = Outcome.NO_VERDICT  # a member's look-up through its class is slow in Python 3.11

FACTS: Mapping[str, Value] = {"acc_bag": strict, "executed": executed, "nonempty": nonempty}
"""Logged beside every reward's terms."""


@dataclass(frozen=True, slots=True)
class Term:
    """One line of a reward's table: the weight and the function that gives the value."""

    weight: float
    value: Value


@dataclass(frozen=True, slots=True)
class Reward:
    """A paper's reward.

    Attributes:
        name: the reward's name, that of its file in `reward_fns/`.
        style: where the paper's answer stands in the completion.
        terms: the table.
        compares: comparators the terms read, beside the one that decides "right" and the strict one.
        facts: numbers to log beside the terms, over and above FACTS.
        judges: what the judge is asked about SQL that is not right, if there is a judge.
        attempts: finds every SQL of a completion, the last one final.
        own: the part of a completion that the policy itself wrote: answer and format are looked for there.
    """

    name: str
    style: AnswerStyle
    terms: Mapping[str, Term]
    compares: tuple[str, ...] = ()
    facts: Mapping[str, Value] = field(default_factory=dict)
    judges: tuple[JudgeKind, ...] = ()
    attempts: FindAttempts = only_answer
    own: OwnText = whole_text
    _own_weights: Mapping[str, float] = field(init=False, repr=False, compare=False)
    _logged: tuple[tuple[str, Value], ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Prepare what every call needs. A fact that a term of the same name says already is not logged."""
        facts = {**FACTS, **self.facts}
        object.__setattr__(self, "_own_weights", {name: term.weight for name, term in self.terms.items()})
        object.__setattr__(self, "_logged", tuple((k, fact) for k, fact in facts.items() if k not in self.terms))

    def score(self, completion: str, gold: str, extra_info: Mapping[str, Any] | None, settings: Settings) -> Verdict:
        """Score one completion.

        Raises:
            DatabaseNotFound: no root, no db_id, or no such file.
            GoldFailed: the gold failed and `on_gold_error` is `raise`.
            JudgeError: the judge gave no usable verdict and `judge.on_failure` is `raise`.
        """
        sample = self.sample(completion, gold, extra_info, settings)
        return self.verdict(with_judgement(self.name, self.judges, sample, settings), settings)

    async def ascore(
        self, completion: str, gold: str, extra_info: Mapping[str, Any] | None, settings: Settings
    ) -> Verdict:
        """`score` for an event loop: neither the queries nor the judge hold it up."""
        sample = await self.asample(completion, gold, extra_info, settings)
        return self.verdict(await awith_judgement(self.name, self.judges, sample, settings), settings)

    def sample(self, completion: str, gold: str, extra_info: Mapping[str, Any] | None, settings: Settings) -> Sample:
        """Extract and execute: all that is needed before the terms."""
        draft = self._draft(completion, gold, extra_info, settings)
        if (known := known_failure(draft.database, gold, settings)) is not None:
            return draft.filled([known] * len(draft.sqls))
        executor, asked = shared_executor(workers=settings.workers), self._asked(settings)
        compared = [
            executor.compare(
                draft.database, gold, sql, comparators=asked, timeout=settings.timeout, variants=draft.variants
            )
            for sql in draft.sqls
        ]
        return draft.filled(compared)

    async def asample(
        self, completion: str, gold: str, extra_info: Mapping[str, Any] | None, settings: Settings
    ) -> Sample:
        """`sample` for an event loop."""
        draft = self._draft(completion, gold, extra_info, settings)
        if (known := await aknown_failure(draft.database, gold, settings)) is not None:
            return draft.filled([known] * len(draft.sqls))
        executor, asked = shared_executor(workers=settings.workers), self._asked(settings)
        compared = [
            await executor.acompare(
                draft.database, gold, sql, comparators=asked, timeout=settings.timeout, variants=draft.variants
            )
            for sql in draft.sqls
        ]
        return draft.filled(compared)

    def verdict(self, sample: Sample, settings: Settings) -> Verdict:
        """Evaluate the terms of a sample that has run."""
        weights = self._weights(settings)
        final = sample.final
        if not final.comparison.gold.ok:
            return self._gold_failed(sample, settings)
        terms = {name: float(term.value(sample)) for name, term in self.terms.items()}
        score = math.fsum([weights[name] * value for name, value in terms.items()])
        facts = {name: float(fact(sample)) for name, fact in self._logged}
        facts["skipped"] = float(sample.unjudged)
        outcome = _NO_VERDICT if sample.unjudged else outcome_of(final.comparison, sample.comparator, final.sql)
        return Verdict(outcome, score, float(final.right), terms, final.sql, facts)

    def _weights(self, settings: Settings) -> Mapping[str, float]:
        """The weight of every term, with those of the settings on top."""
        return merged_weights(self._own_weights, settings.weights) if settings.weights else self._own_weights

    def _gold_failed(self, sample: Sample, settings: Settings) -> Verdict:
        """The same verdict for every completion: its group's advantage is 0."""
        message = sample.final.comparison.gold.message or str(sample.final.comparison.gold.status)
        report_gold(sample.database, sample.gold, message)
        if settings.on_gold_error == "raise":
            raise GoldFailed(f"gold query failed on {sample.database}: {message}: {sample.gold}")
        facts = {name: 0.0 for name, _ in self._logged}
        terms = dict.fromkeys(self.terms, 0.0)
        return Verdict(Outcome.GOLD_ERROR, 0.0, 0.0, terms, sample.sql, {**facts, "skipped": 1.0})

    def _asked(self, settings: Settings) -> tuple[str, ...]:
        """Names of the comparators to evaluate, each once."""
        return _each_once((settings.comparator, "bag", *self.compares))

    def _draft(self, completion: str, gold: str, extra_info: Mapping[str, Any] | None, settings: Settings) -> "_Draft":
        """Everything that can be known before a query runs."""
        info = extra_info or {}
        own = self.own(completion or "", info)
        answer = extract_answer(own, settings.style or self.style)
        database = resolve_database(info.get("db_id"), settings.db_root, info)
        sqls = tuple(self.attempts(completion, answer, info)) or ("",)
        variants = database_variants(database) if settings.comparator == "test_suite" else ()
        question = str(info.get("question") or "")
        chain = str(info.get("gold_chain") or "")
        return _Draft(own, answer, gold, database, settings.comparator, question, sqls, variants, chain)


class _Draft(NamedTuple):
    """A sample whose queries have not run yet."""

    completion: str
    answer: Answer
    gold: str
    database: Path
    comparator: str
    question: str
    sqls: tuple[str, ...]
    variants: tuple[Path, ...]
    gold_chain: str = ""

    def filled(self, compared: Sequence[Comparison]) -> Sample:
        """The sample with its attempts."""
        attempts = [
            Attempt(sql, comparison, is_right(comparison, self.comparator, sql))
            for sql, comparison in zip(self.sqls, compared, strict=True)
        ]
        return Sample(
            self.completion, self.answer, self.gold, self.database, self.comparator, tuple(attempts), {}, self.question,
            gold_chain=self.gold_chain,
        )  # fmt: skip


@lru_cache(maxsize=64)
def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    """The names in their order, each once."""
    return tuple(dict.fromkeys(names))


class GoldFailed(RuntimeError):
    """A gold query failed and the reward was told to stop then."""


def database_variants(database: Path) -> tuple[Path, ...]:
    """The other SQLite files beside `database`, as the Spider test suite lays its variants out; sorted."""
    return tuple(sorted(p for p in database.parent.glob("*.sqlite") if p != database))


@cache
def report_gold(database: Path, gold: str, message: str) -> None:
    """Name a failing gold, once a process."""
    log.error("gold query failed, its question is neutral in training: %s on %s: %s", message, database, gold)
