"""Accuracy against n: by hand, against brute force over all subsets, and as properties."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verl_sql.evaluation.candidates import Candidate
from verl_sql.evaluation.pass_at_k import MOST_SUBSETS, expected_right, sizes
from verl_sql.evaluation.selection import ORACLE, PRM_MEAN, SELECTORS, SELF_CONSISTENCY, Selector
from verl_sql.evaluation.statistics import pass_at_k


def candidate(digest: str, score: float = 0.5, right: bool = False) -> Candidate:
    return Candidate("t", "SELECT 1", "ok" if digest else "error", digest, 1, (score,), score, right)


#                 rank of PRM: 1                    3                    0                2
FOUR = [candidate("b", 0.8, True), candidate("a", 0.2), candidate("c", 0.9), candidate("b", 0.3, True)]


def test_prm_by_hand() -> None:
    # one sample: two of four right; two: {b1,a} {b1,b2} {a,b2} of six; three: {b1,a,b2} of four; four: c is chosen
    assert [expected_right(PRM_MEAN, FOUR, n) for n in (1, 2, 3, 4)] == pytest.approx([0.5, 0.5, 0.25, 0.0])


def test_votes_by_hand() -> None:
    # pairs: {b,a} {b,c} {b,b} right, first of a tie; {a,c} {a,b} {c,b} wrong. Triples: bac right as first of a tie,
    # bab and bcb by votes, acb wrong.
    found = [expected_right(SELF_CONSISTENCY, FOUR, n) for n in (1, 2, 3, 4)]
    assert found == pytest.approx([0.5, 0.5, 0.75, 1.0])


@pytest.mark.parametrize("n", [0, 5, -1])
def test_no_such_n(n: int) -> None:
    with pytest.raises(ValueError, match="cannot be chosen from"):
        expected_right(ORACLE, FOUR, n)


def test_sizes() -> None:
    assert [sizes(n) for n in (1, 2, 6, 8, 32)] == [[1], [1, 2], [1, 2, 4, 6], [1, 2, 4, 8], [1, 2, 4, 8, 16, 32]]


CANDIDATES = st.lists(
    st.builds(candidate, st.sampled_from(["", "a", "b"]), st.sampled_from([0.1, 0.5, 0.9])), min_size=1, max_size=7
).map(lambda found: [candidate(c.digest, c.step_scores[0], c.digest == "b") for c in found if c.step_scores])


def brute_force(selector: Selector, candidates: list[Candidate], n: int) -> float:
    subsets = [list(subset) for subset in combinations(candidates, n)]
    return sum(subset[selector.choose(subset)].right for subset in subsets) / len(subsets)


@given(CANDIDATES, st.integers(1, 7))
@settings(max_examples=60, deadline=None)
def test_equals_brute_force(candidates: list[Candidate], n: int) -> None:
    n = min(n, len(candidates))
    oracle = expected_right(ORACLE, candidates, n)
    assert oracle == pytest.approx(pass_at_k(len(candidates), sum(c.right for c in candidates), n))
    for selector in SELECTORS:
        found = expected_right(selector, candidates, n)
        assert found == pytest.approx(brute_force(selector, candidates, n))
        assert found <= oracle + 1e-12


def test_votes_over_drawn_subsets_are_near_those_over_all() -> None:
    candidates = [candidate("abbc"[i % 4], right="abbc"[i % 4] == "b") for i in range(12)]
    assert len(list(combinations(candidates, 5))) > MOST_SUBSETS
    drawn = expected_right(SELF_CONSISTENCY, candidates, 5)
    assert drawn == pytest.approx(brute_force(SELF_CONSISTENCY, candidates, 5), abs=0.08)
    assert drawn == expected_right(SELF_CONSISTENCY, candidates, 5)
