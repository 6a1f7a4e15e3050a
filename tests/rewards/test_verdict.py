"""Verdicts as verl sees them."""

import math

import pytest

from verl_sql.rewards.verdict import Outcome, Verdict, verdict_dict


def test_dict_has_every_value_as_a_float_and_one_outcome():
    verdict = Verdict(Outcome.MISMATCH, 1.5, 0.0, {"syntax": 1}, "SELECT 1", {"executed": 1.0})
    row = verdict_dict(verdict)
    assert row["score"] == 1.5
    assert row["syntax"] == 1.0
    assert row["outcome"] == "mismatch"
    assert row["outcome_mismatch"] == 1.0
    assert sum(row[f"outcome_{member}"] for member in Outcome) == 1.0
    assert all(isinstance(v, float) and math.isfinite(v) for k, v in row.items() if k not in ("pred", "outcome"))


def test_keys_do_not_depend_on_the_outcome():
    rows = [verdict_dict(Verdict(outcome, 0.0, 0.0, {"syntax": 0.0}, "")) for outcome in Outcome]
    assert all(list(row) == list(rows[0]) for row in rows)


@pytest.mark.parametrize("name", ["reward", "score", "pred"])
def test_reserved_names_are_refused(name: str):
    with pytest.raises(ValueError, match=name):
        verdict_dict(Verdict(Outcome.MATCH, 1.0, 1.0, {name: 1.0}, ""))


def test_every_outcome_is_documented():
    source = Outcome.__doc__ or ""
    assert source
    assert {str(member) for member in Outcome} >= {"match", "mismatch", "both_empty", "no_answer", "gold_error"}
