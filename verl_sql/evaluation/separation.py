"""How well a reward model tells right candidates from wrong ones of the same question, and where it cannot.

Only such pairs matter to a choice. Pairs that share all their steps and differ in the final query alone are counted
apart: a process reward model that does not see the final query gives both the same score.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from verl_sql.evaluation.candidates import Answered, Candidate
from verl_sql.evaluation.selection import OUTCOME_MODEL, PRM_MEAN, Selector
from verl_sql.sqltext.chain import split_chain

SAME = 1e-6
"""Scores nearer than this are equal."""


@dataclass(slots=True)
class Separation:
    """Pairs of a right and a wrong candidate of one question that both execute; equal queries count once.

    Attributes:
        pairs: how many.
        right_higher: the right one has the higher score.
        tied: both have the same.
        same_steps: pairs whose steps are the same texts, so that only their final queries differ.
    """

    pairs: int = 0
    right_higher: int = 0
    tied: int = 0
    same_steps: int = 0

    @property
    def auc(self) -> float:
        """Probability that the right one of a pair scores higher, a tie counting half; 0.5 without pairs."""
        return (self.right_higher + self.tied / 2) / self.pairs if self.pairs else 0.5


def separations(questions: Sequence[Answered], selectors: Sequence[Selector]) -> dict[str, dict[str, Any]]:
    """`Separation` of the PRM's mean and of the outcome model as far as they are among the selectors, with its AUC."""
    found = {}
    for ranking in (PRM_MEAN, OUTCOME_MODEL):
        if ranking in selectors:
            one = separation(questions, ranking.score)
            found[ranking.name] = asdict(one) | {"auc": one.auc}
    return found


def separation(questions: Sequence[Answered], score: Callable[[Candidate], float]) -> Separation:
    """Count the pairs of all questions by what a score says of them."""
    found = Separation()
    for right, wrong in (pair for question in questions for pair in _pairs(question)):
        difference = score(right) - score(wrong)
        found.pairs += 1
        found.right_higher += difference > SAME
        found.tied += abs(difference) <= SAME
        found.same_steps += _steps(right.sql) == _steps(wrong.sql)
    return found


def _pairs(question: Answered) -> Iterator[tuple[Candidate, Candidate]]:
    different = list({candidate.sql: candidate for candidate in question.samples if candidate.executes}.values())
    return ((a, b) for a in different if a.right for b in different if not b.right)


def _steps(sql: str) -> tuple[str, ...]:
    chain = split_chain(sql)
    return tuple(sql[step.start : step.end] for step in chain.steps)
