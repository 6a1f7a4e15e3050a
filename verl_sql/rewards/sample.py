"""One completion on its way to a verdict: what was extracted, what ran, and what the terms may look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from verl_sql.database.execution import Comparison, Execution
from verl_sql.sqltext.extract import Answer


@dataclass(frozen=True, slots=True)
class Attempt:
    """One SQL of a completion and its comparison with the gold; multi-turn completions have several.

    Attributes:
        sql: the SQL as the policy wrote it, empty when none was found.
        comparison: both executions and the comparators' values.
        right: whether the chosen comparator calls it right; never True when the gold failed or there is no SQL.
    """

    sql: str
    comparison: Comparison
    right: bool


@dataclass(frozen=True, slots=True)
class Sample:
    """Everything a term may read; terms are functions of it and nothing else.

    Attributes:
        completion: the policy's whole text.
        answer: what was extracted from it.
        gold: the gold SQL.
        database: the SQLite file both queries ran on.
        comparator: name of the comparator that decides `right`.
        attempts: every SQL of the completion in order, the last one final; never empty.
        judged: the judge's values by kind (`score`, `grade`, `changes`), empty when it was not asked.
        question: the question's text, for the judge's prompt.
        unjudged: the judge was asked, gave no usable verdict, and the sample is to be skipped.
        gold_chain: the gold as a chain of CTEs, empty when the data has none; compared in structure, never run.
    """

    completion: str
    answer: Answer
    gold: str
    database: Path
    comparator: str
    attempts: tuple[Attempt, ...]
    judged: Mapping[str, float] = field(default_factory=dict)
    question: str = ""
    unjudged: bool = False
    gold_chain: str = ""

    @property
    def final(self) -> Attempt:
        """The attempt that counts."""
        return self.attempts[-1]

    @property
    def sql(self) -> str:
        """The SQL that is scored, empty when none was found."""
        return self.attempts[-1].sql

    @property
    def pred(self) -> Execution:
        """The execution of the scored SQL."""
        return self.attempts[-1].comparison.pred

    @property
    def right(self) -> bool:
        """Whether the scored SQL is right by the chosen comparator."""
        return self.attempts[-1].right

    def value(self, name: str) -> float:
        """A comparator's value for the scored SQL; 0.0 when it is not defined for a failed query."""
        return self.final.comparison.values.get(name) or 0.0
