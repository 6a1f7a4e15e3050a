"""How one score came about, step by step, as plain data: for `verl-sql explain` and for notebooks."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

from verl_sql.database.diff import ResultDiff, result_diff
from verl_sql.database.execution import Execution
from verl_sql.database.executor import shared_executor
from verl_sql.rewards.judge.asking import with_judgement
from verl_sql.rewards.reward import Reward
from verl_sql.rewards.sample import Sample
from verl_sql.rewards.schema_items import items_of, names_of
from verl_sql.rewards.settings import Settings, merged_weights
from verl_sql.rewards.verdict import Outcome, Verdict
from verl_sql.sqltext.parse import parse_sql
from verl_sql.sqltext.profile import Difference, differences, profile_of

COMPARATORS = ("bird_set", "bag", "ordered", "test_suite", "soft_f1", "qatch")
MAX_ROWS = 10_000
"""Rows of either result that are looked at for the diff."""


@dataclass(frozen=True, slots=True)
class TermLine:
    """One term: its value, its weight, and what it measures in a sentence."""

    name: str
    value: float
    weight: float
    meaning: str

    @property
    def points(self) -> float:
        """What it adds to the score."""
        return self.value * self.weight


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything that went into one score.

    Attributes:
        sample: the extracted and executed completion.
        verdict: the outcome, the terms and the score.
        gold, pred: both executions with their first rows.
        parse_error: why sqlglot has no tree of the prediction, empty when it has one.
        comparators: value of every comparator.
        rows: the difference of the results, None unless both ran.
        clauses: where the two queries' clauses differ.
        missing_items, extra_items: schema items of the gold that the prediction lacks, and the other way round.
        terms: the table of terms.
        changes: what would change the outcome, in sentences.
    """

    sample: Sample
    verdict: Verdict
    gold: Execution
    pred: Execution
    parse_error: str
    comparators: Mapping[str, float | None]
    rows: ResultDiff | None
    clauses: tuple[Difference, ...]
    missing_items: tuple[str, ...]
    extra_items: tuple[str, ...]
    terms: tuple[TermLine, ...]
    changes: tuple[str, ...]


def explain(
    reward: Reward, completion: str, gold: str, extra_info: Mapping[str, Any] | None, settings: Settings
) -> Explanation:
    """Score a completion and keep every step.

    Raises:
        DatabaseNotFound: no root, no db_id, or no such file.
    """
    sample = reward.sample(completion, gold, extra_info, settings)
    sample = with_judgement(reward.name, reward.judges, sample, settings)
    verdict = reward.verdict(sample, settings)
    executor = shared_executor(workers=settings.workers)
    gold_run, pred_run = (
        executor.execute(sample.database, sql, timeout=settings.timeout, keep_rows=MAX_ROWS)
        for sql in (gold, sample.sql)
    )
    compared = executor.compare(
        sample.database, gold, sample.sql, comparators=COMPARATORS, timeout=settings.timeout
    ).values
    names = names_of(sample.database)
    have, want = items_of(sample)
    rows = _diff(gold_run, pred_run)
    return Explanation(
        sample=sample,
        verdict=verdict,
        gold=gold_run,
        pred=pred_run,
        parse_error=parse_sql(sample.sql).error or "",
        comparators=compared,
        rows=rows,
        clauses=tuple(differences(profile_of(sample.sql, names), profile_of(gold, names))),
        missing_items=_named(want.all - have.all),
        extra_items=_named(have.all - want.all),
        terms=_term_lines(reward, verdict, settings),
        changes=tuple(_changes(sample, verdict, gold_run, pred_run, rows, compared)),
    )


def _diff(gold: Execution, pred: Execution) -> ResultDiff | None:
    """The difference of two results that are there whole or in their first rows."""
    if gold.rows is None or pred.rows is None:
        return None
    return result_diff(gold.rows, pred.rows, gold.columns, pred.columns)


def _named(items: frozenset[str | tuple[str, str]]) -> tuple[str, ...]:
    """Schema items as sorted text."""
    return tuple(sorted(item if isinstance(item, str) else ".".join(item) for item in items))


def _term_lines(reward: Reward, verdict: Verdict, settings: Settings) -> tuple[TermLine, ...]:
    """The table of terms with the weights in force."""
    weights = merged_weights({name: term.weight for name, term in reward.terms.items()}, settings.weights)
    return tuple(
        TermLine(name, verdict.terms[name], weights[name], _first_line(term.value.__doc__))
        for name, term in reward.terms.items()
    )


def _first_line(text: str | None) -> str:
    """The first paragraph of a docstring on one line."""
    return " ".join((text or "").strip().split("\n\n")[0].split())


def _changes(
    sample: Sample,
    verdict: Verdict,
    gold: Execution,
    pred: Execution,
    rows: ResultDiff | None,
    compared: Mapping[str, float | None],
) -> list[str]:
    """Sentences on what would change the outcome."""
    if verdict.outcome is Outcome.GOLD_ERROR:
        return [f"nothing the policy writes: the gold itself fails ({gold.message}); mend or drop the question"]
    if verdict.outcome is Outcome.NO_ANSWER:
        return ["an answer where the reward looks for it"]
    if not pred.ok:
        return [f"SQL that runs: {pred.status}, {pred.message}"]
    if rows is None or verdict.acc:
        return [_if_right(sample, compared)] if verdict.acc else []
    if rows.gold_width != rows.pred_width and rows.n_pred:
        return [f"{rows.gold_width} columns as in the gold, not {rows.pred_width}"]
    if order := _column_order(gold, pred):
        return [f"the same columns in the order {', '.join(order)}"]
    return [f"the gold's rows: {rows.summary()}"]


def _if_right(sample: Sample, compared: Mapping[str, float | None]) -> str:
    """What the strict comparators say of SQL that counts as right."""
    stricter = [name for name in ("bag", "ordered", "test_suite") if compared.get(name) != 1.0]
    return f"right by {sample.comparator}" + (f"; it would be wrong by {', '.join(stricter)}" if stricter else "")


def _column_order(gold: Execution, pred: Execution) -> tuple[str, ...]:
    """Names of the predicted columns in an order that makes the sets equal; empty when there is none (up to 5)."""
    width = len(pred.columns)
    if not gold.rows or not pred.rows or not 2 <= width <= 5:
        return ()
    wanted = set(gold.rows)
    for order in permutations(range(width)):
        if {tuple(row[i] for i in order) for row in pred.rows} == wanted:
            return tuple(pred.columns[i] for i in order)
    return ()
