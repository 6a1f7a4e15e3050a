"""What follows an attempt of the agent loop `verl_sql_refine`: feedback, or the end of the trajectory."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from verl_sql.database.execution import Execution
from verl_sql.database.executor import Executor, shared_executor
from verl_sql.database.feedback import (
    ROW_LIMIT,
    diagnostic_feedback,
    execution_feedback,
    gives_cause_to_complain,
)
from verl_sql.integration.refinement_settings import RefinementSettings
from verl_sql.rewards.execution import is_right
from verl_sql.rewards.reward import database_variants
from verl_sql.rewards.schema_items import names_of
from verl_sql.rewards.settings import Settings


@dataclass(frozen=True, slots=True)
class Question:
    """What a trajectory is about.

    Attributes:
        database: the SQLite file.
        golds: the gold and, if there is one, its chain of CTEs; empty outside training.
    """

    database: Path
    golds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Feedback:
    """Gives the feedback of one trajectory.

    Attributes:
        question: its question.
        options: the loop's options.
        scoring: the reward's settings, which say what is right.
        tokens: special tokens that no text may hold.
    """

    question: Question
    options: RefinementSettings
    scoring: Settings
    tokens: Collection[str]

    async def after(self, attempts: Sequence[str]) -> tuple[str, str]:
        """The feedback on the last attempt, and why the trajectory ends now, one of the two empty.

        Ends: `right` and `gold_error` where the gold is known, `content` (nothing to complain of) and `repeat` where it
        is not, and `turns`.
        """
        oracle = bool(self.question.golds) and self.options.feedback != "execution"
        ended = await self._judged(attempts[-1]) if oracle else ""
        if ended or len(attempts) >= self.options.turns:
            return "", ended or "turns"
        execution = await self._executor().aexecute(
            self.question.database, attempts[-1], timeout=self.scoring.timeout, keep_rows=ROW_LIMIT
        )
        if not oracle and (ended := _contented(execution, attempts)):
            return "", ended
        return self._text(attempts[-1], execution, oracle), ""

    async def _judged(self, sql: str) -> str:
        """`right`, `gold_error`, or nothing for an attempt that is wrong."""
        compared = await self._executor().acompare(
            self.question.database,
            self.question.golds[0],
            sql,
            comparators=tuple(dict.fromkeys((self.scoring.comparator, "bag"))),  # as the reward asks: remembered
            timeout=self.scoring.timeout,
            variants=database_variants(self.question.database) if self.scoring.comparator == "test_suite" else (),
        )
        if not compared.gold.ok:
            return "gold_error"
        return "right" if is_right(compared, self.scoring.comparator, sql) else ""

    def _text(self, sql: str, execution: Execution, oracle: bool) -> str:
        """What the policy reads."""
        parts = []
        if not oracle or self.options.feedback == "both":
            parts.append(execution_feedback(execution, self.tokens))
        if oracle:
            names = names_of(self.question.database)
            parts.append(diagnostic_feedback(sql, self.question.golds, execution, names, self.options.max_lines))
        return "\n".join(parts)

    def _executor(self) -> Executor:
        """The process's executor, which the reward shares where it runs in the same process."""
        return shared_executor(workers=self.scoring.workers)


def _contented(execution: Execution, attempts: Sequence[str]) -> str:
    """Why an attempt that nobody can judge is the last: it gives no cause to complain, or says the same again."""
    if not gives_cause_to_complain(execution):
        return "content"
    return "repeat" if attempts[-1] in attempts[:-1] else ""
