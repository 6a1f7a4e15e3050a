"""Stratified samples: shares, order independence, seeds."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from verl_sql.dataset.example import Example
from verl_sql.dataset.sampling import Stratum, allocate, stratified_sample, stratum_of

MEMBERS = [(f"q{i}", "simple" if i % 10 < 7 else "medium" if i % 10 < 9 else "hard") for i in range(100)]


def test_every_stratum_has_its_share() -> None:
    chosen = stratified_sample(MEMBERS, 20)
    assert Counter(dict(MEMBERS)[name] for name in chosen) == {"simple": 14, "medium": 4, "hard": 2}


def test_order_does_not_matter_but_the_seed_does() -> None:
    assert stratified_sample(MEMBERS, 20) == stratified_sample(reversed(MEMBERS), 20)
    assert stratified_sample(MEMBERS, 20) != stratified_sample(MEMBERS, 20, seed=1)


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 50), min_size=1), st.integers(0, 200))
def test_allocation_sums_up_and_stays_within(sizes: dict[str, int], count: int) -> None:
    shares = allocate(sizes, count)
    assert sum(shares.values()) == min(count, sum(sizes.values()))
    assert all(0 <= shares[name] <= size for name, size in sizes.items())


def test_strata() -> None:
    labelled = Example("bird", "train", "0", "d", "?", "", "SELECT 1", difficulty="hard")
    bare = Example("bird", "train", "0", "d", "?", "", "SELECT 1")
    assert [stratum_of(labelled, by) for by in Stratum] == ["hard", "simple", "d"]
    assert stratum_of(bare, Stratum.DIFFICULTY) == "simple"
