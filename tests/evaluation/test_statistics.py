"""Intervals and tests against published and hand-worked values."""

import sys

import pytest

from verl_sql.evaluation.statistics import MissingPackageError, mcnemar_exact, pass_at_k, wilson_interval

WILSON = [
    # Newcombe, Statistics in Medicine 17 (1998), table I, method 3
    (81, 263, 0.2553, 0.3662),
    (15, 148, 0.0624, 0.1605),
    (0, 20, 0.0, 0.1611),
    (1, 29, 0.0061, 0.1718),
    # by hand: 1/2 -+ 1.95996 sqrt(1/40 + 3.84146/400) / 1.384146
    (5, 10, 0.2366, 0.7634),
    # all right: 1 / (1 + 3.84146 / 10)
    (10, 10, 0.7225, 1.0),
]


@pytest.mark.parametrize(("successes", "n", "low", "high"), WILSON)
def test_wilson_interval(successes: int, n: int, low: float, high: float) -> None:
    found = wilson_interval(successes, n)
    assert (round(found.low, 4), round(found.high, 4)) == (low, high)


def test_wilson_interval_of_half_answers_lies_between_its_neighbours() -> None:
    lower, half, upper = (wilson_interval(successes, 10) for successes in (5, 5.5, 6))
    assert lower.low < half.low < upper.low
    assert lower.high < half.high < upper.high


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (3, 2), (-1, 5)])
def test_no_proportion(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="no proportion"):
        wilson_interval(successes, n)


MCNEMAR = [
    (0, 0, 1.0),
    (1, 1, 1.0),
    (5, 0, 2 / 32),
    (10, 2, 2 * (1 + 12 + 66) / 2**12),
    (2, 10, 2 * (1 + 12 + 66) / 2**12),
    (4, 1, 2 * (1 + 5) / 2**5),
]


@pytest.mark.parametrize(("gained", "lost", "p"), MCNEMAR)
def test_mcnemar_exact(gained: int, lost: int, p: float) -> None:
    assert mcnemar_exact(gained, lost) == pytest.approx(p, rel=1e-9)


def test_mcnemar_refuses_negative_counts() -> None:
    with pytest.raises(ValueError, match="negative"):
        mcnemar_exact(-1, 3)


PASS_AT_K = [
    (5, 2, 1, 2 / 5),
    (5, 2, 2, 1 - 3 / 10),
    (5, 2, 3, 1 - 1 / 10),
    (5, 2, 4, 1.0),
    (5, 0, 5, 0.0),
    (200, 1, 100, 0.5),
]


@pytest.mark.parametrize(("n", "correct", "k", "expected"), PASS_AT_K)
def test_pass_at_k(n: int, correct: int, k: int, expected: float) -> None:
    assert pass_at_k(n, correct, k) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("n", "correct", "k"), [(5, 6, 1), (5, 2, 6), (5, 2, 0), (5, -1, 1)])
def test_pass_at_k_refuses_impossible_numbers(n: int, correct: int, k: int) -> None:
    with pytest.raises(ValueError, match="cannot be estimated"):
        pass_at_k(n, correct, k)


def test_says_what_to_do_without_scipy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(MissingPackageError, match="pip install scipy"):
        wilson_interval(1, 2)
