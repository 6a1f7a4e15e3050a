"""Each paper's reward on completions worked out by hand: `cases/<paper>.jsonl`, one completion a line.

`terms` and `score` hold the arithmetic as it was written down; `judged` stands for what a judge said, `attempts` for
what an agent loop hands over, `kwargs` for reward_kwargs, `facts` for numbers logged beside the terms.
"""

import ast
import importlib
import json
import operator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from verl_sql.rewards.settings import Settings
from verl_sql.rewards.verdict import verdict_dict

CASES = Path(__file__).parent / "cases"
PAPERS = ("reasoning_sql", "think2sql", "reward_sql", "tabular_reasoning", "retoolsql", "progress_sql")
OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}


def worked(text: str) -> float:
    """The value of written-down arithmetic: numbers, + - * / and parentheses."""

    def value(node: ast.expr) -> float:
        if isinstance(node, ast.BinOp):
            return OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -value(node.operand)
        assert isinstance(node, ast.Constant)
        return float(node.value)

    return value(ast.parse(text, mode="eval").body)


def cases() -> list[Any]:
    """Every line of every paper."""
    return [
        pytest.param(paper, case, id=f"{paper}: {case['name']}")
        for paper in PAPERS
        for case in map(json.loads, (CASES / f"{paper}.jsonl").read_text(encoding="utf-8").splitlines())
    ]


def scored(paper: str, case: dict[str, Any], root: Path) -> dict[str, Any]:
    """The verdict's dict; what the judge said is put into the sample, everything else runs."""
    module = importlib.import_module(f"verl_sql.reward_fns.{paper}")
    info = {"db_id": "league", "attempts": case.get("attempts")}
    kwargs = {"db_root": str(root), **case.get("kwargs", {})}
    if "judged" not in case:
        return module.compute_score("test", case["completion"], case["gold"], info, **kwargs)
    settings = Settings.from_kwargs(kwargs)
    sample = module.REWARD.sample(case["completion"], case["gold"], info, settings)
    return verdict_dict(module.REWARD.verdict(replace(sample, judged=case["judged"]), settings))


@pytest.mark.parametrize(("paper", "case"), cases())
def test_hand_worked(paper: str, case: dict[str, Any], league_root: Path):
    row = scored(paper, case, league_root)
    expected = {name: worked(value) for name, value in {**case["terms"], **case.get("facts", {})}.items()}
    assert row["outcome"] == case["outcome"]
    assert {name: row[name] for name in expected} == pytest.approx(expected)
    assert row["score"] == pytest.approx(worked(case["score"]))


@pytest.mark.parametrize("paper", PAPERS)
def test_there_are_at_least_twelve(paper: str):
    assert len((CASES / f"{paper}.jsonl").read_text(encoding="utf-8").splitlines()) >= 12


@pytest.mark.parametrize("paper", PAPERS)
def test_keys_are_the_same_for_every_sample(paper: str, league_root: Path):
    keys = {tuple(scored(p.values[0], p.values[1], league_root)) for p in cases() if p.values[0] == paper}
    assert len(keys) == 1
