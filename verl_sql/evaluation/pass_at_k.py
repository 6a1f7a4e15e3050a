"""Accuracy against n: what a selector reaches with n of the N samples, averaged over every choice of n of them.

The average over all subsets of size n is the unbiased estimate of the selector's accuracy with n samples, as pass@k is
for the oracle (Chen et al. 2021, equation 1). Taking the first n alone would estimate the same with more noise.
"""

import random
from collections.abc import Iterator, Sequence
from itertools import combinations
from math import comb, fsum

from verl_sql.evaluation.candidates import Candidate
from verl_sql.evaluation.selection import Ranking, Selector

MOST_SUBSETS = 100
"""Votes are counted over every subset up to so many of them, else over so many drawn ones."""


def sizes(most: int) -> list[int]:
    """The n that are reported: 1, 2, 4, … below `most`, and `most`."""
    return [*(1 << power for power in range(most.bit_length()) if 1 << power < most), most]


def expected_right(selector: Selector, candidates: Sequence[Candidate], n: int, seed: int = 0) -> float:
    """Probability that the selector is right when it sees a random `n` of the candidates, in their order.

    Exact for rankings: with the candidates ranked 0, 1, … the best of a subset has rank r in C(N−1−r, n−1) of the
    C(N, n) subsets. For votes the mean over all subsets, or over MOST_SUBSETS drawn ones where there are more.

    Args:
        selector: who chooses.
        candidates: all N samples of a question.
        n: how many of them are seen.
        seed: of the draw of subsets.

    Raises:
        ValueError: not 1 <= n <= N.
    """
    total = len(candidates)
    if not 1 <= n <= total:
        raise ValueError(f"{n} of {total} candidates cannot be chosen from")
    if isinstance(selector, Ranking):
        order = selector.order(candidates)
        return fsum(comb(total - 1 - r, n - 1) for r, i in enumerate(order) if candidates[i].right) / comb(total, n)
    rights: list[bool] = []
    for subset in _subsets(total, n, seed):
        seen = [candidates[i] for i in subset]
        rights.append(seen[selector.choose(seen)].right)
    return fsum(rights) / len(rights)


def _subsets(total: int, n: int, seed: int) -> Iterator[Sequence[int]]:
    """Every subset of n positions in rising order, or MOST_SUBSETS drawn ones."""
    if comb(total, n) <= MOST_SUBSETS:
        yield from combinations(range(total), n)
        return
    rng = random.Random(seed)
    for _ in range(MOST_SUBSETS):
        yield sorted(rng.sample(range(total), n))
