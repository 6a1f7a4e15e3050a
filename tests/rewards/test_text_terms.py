"""Terms that compare two SQL strings, on values worked out by hand."""

import time

import pytest

from verl_sql.rewards.attempts import MAX_ATTEMPTS, every_answer
from verl_sql.rewards.components import clause_scores, component_f1
from verl_sql.rewards.edit_count import changes_reward, token_edits
from verl_sql.rewards.ngrams import ngram_jaccard
from verl_sql.rewards.string_match import MAX_SECONDS, matching_ratio
from verl_sql.sqltext.extract import extract_answer


@pytest.mark.parametrize(
    ("pred", "gold", "n", "value"),
    [
        ("SELECT a FROM t", "select A from T", 2, 1.0),
        ("SELECT a FROM t", "SELECT b FROM t", 2, 1 / 5),  # only (from, t) of 3 + 3 - 1
        ("SELECT a FROM t", "SELECT b FROM t", 1, 3 / 5),  # select, from, t of a, b and those
        ("SELECT a FROM t", "SELECT b FROM t", 3, 0.0),
        ("SELECT", "SELECT", 2, 1.0),  # no bigram on either side
        ("SELECT", "SELECT a", 2, 0.0),
        ("SELECT a, a, a", "SELECT a, a", 2, 1.0),  # sets: repeats do not count
    ],
)
def test_ngrams(pred: str, gold: str, n: int, value: float):
    assert ngram_jaccard(pred, gold, n) == pytest.approx(value)


@pytest.mark.parametrize(
    ("pred", "gold", "edits"),
    [
        ("SELECT a FROM t", "select a from t;", 0),
        ("SELECT a FROM t", "SELECT b FROM t", 1),
        ("SELECT a FROM t", "SELECT a FROM t WHERE x = 1", 4),
        ("", "SELECT 1", 2),
        ("SELECT 'a b c'", "SELECT 'abc'", 1),  # one literal is one token
    ],
)
def test_token_edits(pred: str, gold: str, edits: int):
    assert token_edits(pred, gold) == edits
    assert changes_reward(edits) == pytest.approx(1 / (edits + 1))


def test_clause_scores():
    scores = clause_scores("SELECT a, b FROM t ORDER BY a", "SELECT a FROM t WHERE b")
    # SELECT: {a , b} against {a}: 2·1/(3 + 1); ORDER BY and WHERE on one side only
    assert scores == {"select": 0.5, "from": 1.0, "where": 0.0, "order by": 0.0}
    assert component_f1("SELECT a, b FROM t ORDER BY a", "SELECT a FROM t WHERE b") == pytest.approx(1.5 / 4)


@pytest.mark.parametrize(
    ("pred", "gold", "value"),
    [("abcd", "abcd", 1.0), ("abcd", "bcde", 2 * 3 / 8), ("abxcd", "abcd", 2 * 4 / 9), ("", "", 1.0), ("a", "b", 0.0)],
)
def test_matching_ratio(pred: str, gold: str, value: float):
    assert matching_ratio(pred, gold) == pytest.approx(value)


def test_autojunk_is_off():
    # With difflib's autojunk a character in more than 1 % of 200 or more would not match at all.
    assert matching_ratio("a" * 300, "a" * 300) == 1.0


def test_a_string_made_to_stall_difflib_is_given_up(caplog: pytest.LogCaptureFixture):
    start = time.monotonic()
    assert matching_ratio("ab" * 20_000, "ba" * 3_000) == 0.0
    assert time.monotonic() - start < MAX_SECONDS + 10
    assert "given up" in caplog.text


def attempts(text: str, **info: object) -> list[str]:
    return list(every_answer(text, extract_answer(text, "answer_tag"), info))


def test_attempts_of_a_text_and_of_an_agent_loop():
    text = "<answer>SELECT 1</answer> result: 1 <think><answer>SELECT 0</answer></think><answer>SELECT 2</answer>"
    assert attempts(text) == ["SELECT 1", "SELECT 2"]
    assert attempts(text, attempts=["SELECT 3"]) == ["SELECT 3"]
    assert attempts(text, attempts='["SELECT 3", null]') == ["SELECT 3", ""]
    assert attempts("nothing") == [""]
    many = attempts("".join(f"<answer>SELECT {i}</answer>" for i in range(40)))
    assert (len(many), many[0], many[-1]) == (MAX_ATTEMPTS, "SELECT 0", "SELECT 39")
