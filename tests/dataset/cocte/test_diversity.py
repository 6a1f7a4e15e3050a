"""The diversity filter: shapes and distances by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_sql.dataset.cocte.diversity import distance, diverse, kept_at, shape

PLAIN = "SELECT a FROM t"
RENAMED = "SELECT b FROM u"
FILTERED = "SELECT a FROM t WHERE a = 1"


def test_shape_is_pre_order_without_names() -> None:
    assert shape(PLAIN) == shape(RENAMED)
    assert shape(FILTERED)[0] == "select"
    assert sorted(shape(FILTERED)) == sorted(["select", "column", "from", "table", "where", "eq", "column", "literal"])
    assert shape("SELECT FROM") == ()


def test_distance_is_edits_over_the_longer() -> None:
    assert distance("abcd", "abxd") == 0.25
    assert distance("", "") == 0.0
    assert distance(shape(PLAIN), shape(FILTERED)) == pytest.approx(4 / 8)


def test_later_chains_go() -> None:
    assert diverse([PLAIN, RENAMED, FILTERED], 0.1) == [PLAIN, FILTERED]
    assert diverse([PLAIN, RENAMED, PLAIN], 0.0) == [PLAIN, RENAMED]
    assert diverse([PLAIN, FILTERED], 0.6) == [PLAIN]


def test_each_threshold_is_counted() -> None:
    questions = {"1": [PLAIN, RENAMED, FILTERED], "2": [PLAIN]}
    assert kept_at(questions, (0.0, 0.1, 0.6)) == {0.0: 4, 0.1: 3, 0.6: 2}


@given(st.lists(st.sampled_from([PLAIN, RENAMED, FILTERED, "SELECT 1", "SELECT a FROM t ORDER BY a"])), st.floats(0, 1))
def test_kept_chains_are_apart_and_the_first_stays(chains: list[str], threshold: float) -> None:
    kept = diverse(chains, threshold)
    assert kept[:1] == chains[:1]
    for i, one in enumerate(kept):
        assert all(distance(shape(one), shape(other)) >= threshold for other in kept[:i])
