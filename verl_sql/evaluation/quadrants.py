"""The four quadrants of process and outcome reward (Reward-SQL §7.2, Table 1).

PR is the mean step score, OR whether the result is right. The paper does not say where "high" PR begins; here it is
0.5, where the process reward model calls a chain rather right than wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from verl_sql.evaluation.candidates import Candidate

HIGH = 0.5


@dataclass(frozen=True, slots=True)
class Quadrants:
    """Shares of answers in [0, 1], which sum to 1.

    Attributes:
        high_right: +PR/+OR, the model is confident and right.
        high_wrong: +PR/−OR, fooled.
        low_wrong: −PR/−OR, rightly doubted.
        low_right: −PR/+OR, wrongly doubted.
    """

    high_right: float
    high_wrong: float
    low_wrong: float
    low_right: float


def quadrants(answers: Sequence[Candidate], threshold: float = HIGH) -> Quadrants:
    """The quadrants of one answer a question.

    Args:
        answers: the answers that were given, scored by the process reward model.
        threshold: PR from which on it counts as high.

    Raises:
        ValueError: there are no answers, or one was not scored.
    """
    if not answers:
        raise ValueError("there are no answers to sort into quadrants")
    counts = {(high, right): 0 for high in (True, False) for right in (True, False)}
    for answer in answers:
        reward = answer.process_reward
        if reward is None:
            raise ValueError("an answer without step scores has no quadrant")
        counts[reward >= threshold, answer.right] += 1
    shares = {place: count / len(answers) for place, count in counts.items()}
    return Quadrants(shares[True, True], shares[True, False], shares[False, False], shares[False, True])
