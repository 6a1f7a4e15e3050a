"""Choosing one of N candidates (Reward-SQL §5.4 and its Table 4).

Every selector first drops the candidates that do not execute. If none is left it takes the first candidate. Whatever
ties, the candidate that came first wins, so that a choice never depends on anything else.

| selector | takes |
|---|---|
| `first_executable` | the first that executes |
| `self_consistency` | the first of those whose result most candidates share; results are sets of rows (bird_set) |
| `outcome_model` | the highest outcome score |
| `prm_mean` | the highest mean step score: PR, the paper's choice |
| `prm_min`, `prm_product`, `prm_last` | the highest least step score, product of them, score of the last step |
| `outcome_vote`, `prm_vote` | as self-consistency; a vote weighs its outcome score, or the product of its step scores |
| `oracle` | a right one if there is any: pass@n, what no selector can beat |
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum, inf, prod

from verl_sql.evaluation.candidates import Candidate


@dataclass(frozen=True, slots=True)
class Ranking:
    """A selector that takes the candidate with the highest score.

    Attributes:
        name: of the selector.
        score: a candidate's score; the higher the better.
    """

    name: str
    score: Callable[[Candidate], float]

    def order(self, candidates: Sequence[Candidate]) -> list[int]:
        """Positions of the candidates, best first: those that execute by score, then the others; ties as they came."""

        def rank(position: int) -> tuple[bool, float]:
            candidate = candidates[position]
            return not candidate.executes, -self.score(candidate) if candidate.executes else 0.0

        return sorted(range(len(candidates)), key=rank)

    def choose(self, candidates: Sequence[Candidate]) -> int:
        """Position of the chosen candidate.

        Raises:
            ValueError: there are no candidates.
        """
        _check(candidates)
        return self.order(candidates)[0]


@dataclass(frozen=True, slots=True)
class Voting:
    """The candidates that execute vote with their results (Wang et al. 2023, on result sets), each vote with a weight.

    Attributes:
        name: of the selector.
        weight: of a candidate's vote, at least 0. Votes weighed by a reward model are those of Li et al. 2023.
    """

    name: str
    weight: Callable[[Candidate], float]

    def choose(self, candidates: Sequence[Candidate]) -> int:
        """Position of the first candidate whose result has the most votes; of equal ones the one that came first.

        Raises:
            ValueError: there are no candidates.
        """
        _check(candidates)
        votes = [candidate.digest if candidate.executes else None for candidate in candidates]
        return most_voted(votes, [self.weight(candidate) for candidate in candidates])


Selector = Ranking | Voting


def most_voted(votes: Sequence[str | None], weights: Sequence[float] | None = None) -> int:
    """Position of the first ballot of those that weigh most together; 0 when nobody votes.

    Args:
        votes: what each votes for; None for no vote.
        weights: of each vote; all alike by default.
    """
    shares: dict[str, list[float]] = {}
    for vote, weight in zip(votes, weights or [1.0] * len(votes), strict=True):
        if vote is not None:
            shares.setdefault(vote, []).append(weight)
    totals = {vote: fsum(own) for vote, own in shares.items()}  # exact, so that the order of votes decides nothing
    return votes.index(max(totals, key=lambda vote: totals[vote])) if totals else 0


def _steps(combine: Callable[[Sequence[float]], float]) -> Callable[[Candidate], float]:
    """The score that combines step scores; a candidate without any comes last."""

    def score(candidate: Candidate) -> float:
        return combine(candidate.step_scores) if candidate.step_scores else -inf

    return score


def _last(scores: Sequence[float]) -> float:
    return scores[-1]


def _process_reward(candidate: Candidate) -> float:
    reward = candidate.process_reward
    return -inf if reward is None else reward


def _outcome_score(candidate: Candidate) -> float:
    return -inf if candidate.outcome_score is None else candidate.outcome_score


def _chance(candidate: Candidate) -> float:
    """That all steps are right, were their scores independent; 0 without any step."""
    return prod(candidate.step_scores) if candidate.step_scores else 0.0


def _one(candidate: Candidate) -> float:
    return 1.0


def _as_they_came(candidate: Candidate) -> float:
    return 0.0


def _right(candidate: Candidate) -> float:
    return float(candidate.right)


FIRST_EXECUTABLE = Ranking("first_executable", _as_they_came)
SELF_CONSISTENCY = Voting("self_consistency", _one)
OUTCOME_MODEL = Ranking("outcome_model", _outcome_score)
PRM_MEAN = Ranking("prm_mean", _process_reward)
PRM_MIN = Ranking("prm_min", _steps(min))
PRM_PRODUCT = Ranking("prm_product", _steps(prod))
PRM_LAST = Ranking("prm_last", _steps(_last))
OUTCOME_VOTE = Voting("outcome_vote", lambda candidate: candidate.outcome_score or 0.0)
PRM_VOTE = Voting("prm_vote", _chance)
ORACLE = Ranking("oracle", _right)
SELECTORS: tuple[Selector, ...] = (
    FIRST_EXECUTABLE,
    SELF_CONSISTENCY,
    OUTCOME_MODEL,
    PRM_MEAN,
    PRM_MIN,
    PRM_PRODUCT,
    PRM_LAST,
    OUTCOME_VOTE,
    PRM_VOTE,
    ORACLE,
)
"""In the order in which tables show them."""


def available(candidates: Sequence[Candidate]) -> tuple[Selector, ...]:
    """The selectors for which these candidates carry scores: without a PRM none of its five, and so on."""
    no_steps = any(candidate.step_scores is None for candidate in candidates)
    no_outcome = any(candidate.outcome_score is None for candidate in candidates)

    def usable(selector: Selector) -> bool:
        if selector.name.startswith("prm_"):
            return not no_steps
        return not selector.name.startswith("outcome_") or not no_outcome

    return tuple(selector for selector in SELECTORS if usable(selector))


def _check(candidates: Sequence[Candidate]) -> None:
    if not candidates:
        raise ValueError("there are no candidates to choose from")
