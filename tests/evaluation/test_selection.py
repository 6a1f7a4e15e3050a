"""Selectors on candidates worked out by hand, and what must hold for any candidates."""

from collections.abc import Sequence
from math import fsum

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verl_sql.evaluation.candidates import Candidate
from verl_sql.evaluation.selection import ORACLE, SELECTORS, Ranking, Selector, available

A, B, C = "a", "b", "c"


def ran(digest: str, scores: Sequence[float] = (0.5,), outcome: float = 0.5, right: bool = False) -> Candidate:
    """A candidate that executes."""
    return Candidate(f"t{digest}", "SELECT 1", "ok", digest, len(scores), tuple(scores), outcome, right)


def failed(scores: Sequence[float] = (0.99,), outcome: float = 0.99) -> Candidate:
    """One that does not."""
    return Candidate("t", "SELECT", "error", "", len(scores), tuple(scores), outcome)


#             mean min  product last
HAND = [
    failed([1.0, 1.0], 1.0),
    ran(A, [0.9, 0.3], 0.2),  # 0.60 0.3  0.27   0.3
    ran(B, [0.7, 0.6], 0.8, True),  # 0.65 0.6  0.42   0.6
    ran(B, [0.7], 0.4, True),  # 0.70 0.7  0.70   0.7
    ran(C, [0.4, 0.8, 0.8], 0.9),  # 0.667 0.4 0.256  0.8
]
CHOSEN = {
    "first_executable": 1,
    "self_consistency": 2,
    "outcome_model": 4,
    "prm_mean": 3,
    "prm_min": 3,
    "prm_product": 3,
    "prm_last": 4,
    "outcome_vote": 2,  # B has 1.2, A 0.2, C 0.9
    "prm_vote": 2,  # B 1.12, A 0.27, C 0.256
    "oracle": 2,
}


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda selector: selector.name)
def test_by_hand(selector: Selector) -> None:
    assert selector.choose(HAND) == CHOSEN[selector.name]


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda selector: selector.name)
def test_none_executes_takes_the_first(selector: Selector) -> None:
    assert selector.choose([failed([0.1], 0.1), failed([0.9], 0.9)]) == 0


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda selector: selector.name)
def test_a_tie_goes_to_the_one_that_came_first(selector: Selector) -> None:
    assert selector.choose([failed(), ran(A), ran(B), ran(A), ran(B)]) == 1


@pytest.mark.parametrize("selector", SELECTORS, ids=lambda selector: selector.name)
def test_nothing_to_choose_from(selector: Selector) -> None:
    with pytest.raises(ValueError, match="no candidates"):
        selector.choose([])


def test_empty_results_vote_with_each_other() -> None:
    empty = ran("digest of no rows")
    assert next(s for s in SELECTORS if s.name == "self_consistency").choose([ran(A), empty, empty]) == 1


def test_a_chain_without_steps_is_taken_last() -> None:
    bare = ran(A, [], right=True)
    for name in ("prm_mean", "prm_min", "prm_product", "prm_last"):
        assert next(s for s in SELECTORS if s.name == name).choose([bare, ran(B, [0.01])]) == 1


def test_a_weighed_vote_is_no_ranking_and_no_count() -> None:
    voters = [ran(A, [0.4]), ran(A, [0.4]), ran(A, [0.4]), ran(B, [0.9]), ran(B, [0.8]), ran(C, [0.95])]
    chosen = {s.name: s.choose(voters) for s in SELECTORS}
    assert (chosen["self_consistency"], chosen["prm_mean"], chosen["prm_vote"]) == (0, 5, 3)


def test_selectors_without_their_scores_are_not_available() -> None:
    unscored = Candidate("t", "SELECT 1", "ok", A)
    assert [s.name for s in available([unscored])] == ["first_executable", "self_consistency", "oracle"]
    only_outcome = Candidate("t", "SELECT 1", "ok", A, outcome_score=0.5)
    assert "outcome_model" in [s.name for s in available([only_outcome])]
    assert {s.name for s in available(HAND)} == set(CHOSEN)


SCORE = st.floats(0, 1, allow_nan=False)
CANDIDATE = st.one_of(
    st.builds(lambda scores, o: failed(scores, o), st.lists(SCORE, max_size=3), SCORE),
    st.builds(lambda d, s, o: ran(d, s, o, right=d == B), st.sampled_from("abc"), st.lists(SCORE, max_size=3), SCORE),
)
CANDIDATES = st.lists(CANDIDATE, min_size=1, max_size=8)


@given(CANDIDATES)
@settings(max_examples=80, deadline=None)
def test_what_executes_is_preferred_and_the_oracle_is_not_beaten(candidates: list[Candidate]) -> None:
    best = candidates[ORACLE.choose(candidates)].right
    for selector in SELECTORS:
        chosen = candidates[selector.choose(candidates)]
        assert chosen.executes or not any(candidate.executes for candidate in candidates)
        assert chosen.right <= best


@given(CANDIDATES, st.randoms(use_true_random=False))
@settings(max_examples=80, deadline=None)
def test_order_matters_to_ties_only(candidates: list[Candidate], rng: object) -> None:
    shuffled = list(candidates)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    for selector in SELECTORS[1:]:
        one, other = candidates[selector.choose(candidates)], shuffled[selector.choose(shuffled)]
        assert worth(selector, one, candidates) == worth(selector, other, candidates)


def worth(selector: Selector, chosen: Candidate, candidates: list[Candidate]) -> float:
    """What the selector looks at: votes or score; -2 for a candidate that does not execute."""
    if not chosen.executes:
        return -2.0
    if isinstance(selector, Ranking):
        return selector.score(chosen)
    return fsum(selector.weight(c) for c in candidates if c.executes and c.digest == chosen.digest)
