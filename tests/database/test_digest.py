"""result_digest: equal exactly when the sets of rows are equal."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from verl_sql.database.digest import result_digest

CELLS = st.one_of(
    st.none(),
    st.integers(-3, 3),
    st.sampled_from([0.0, -0.0, 1.0, 2.5, 1e300, float("inf"), float("-inf"), 9007199254740993, 9007199254740992.0]),
    st.sampled_from(["", "1", "a", "\udcff", "é"]),
    st.sampled_from([b"", b"1", b"a"]),
)
ROWS = st.lists(st.tuples(CELLS, CELLS), max_size=4)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ROWS, ROWS)
def test_equal_exactly_when_sets_are(one: list[tuple], other: list[tuple]) -> None:
    assert (result_digest(one) == result_digest(other)) == (set(one) == set(other))


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ([(1,), (2,)], [(2,), (1,), (1,)], True),
        ([(1,)], [(1.0,)], True),
        ([(1,)], [("1",)], False),
        ([("a",)], [(b"a",)], False),
        ([("a", "b")], [("ab", "")], False),
        ([], [()], False),
        ([(2**63,)], [(float(2**63),)], True),
        ([(float("inf"),)], [(float("-inf"),)], False),
    ],
)
def test_corners(one: list[tuple], other: list[tuple], equal: bool) -> None:
    assert (result_digest(one) == result_digest(other)) is equal
