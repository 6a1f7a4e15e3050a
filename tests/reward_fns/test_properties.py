"""What holds for every completion: the range, right above wrong, the same keys, what does not count."""

import importlib
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from verl_sql.rewards.settings import Settings
from verl_sql.rewards.verdict import Verdict, verdict_dict

GOLDS = (
    "SELECT name FROM team WHERE city = 'Rome'",
    "SELECT count(*) FROM player WHERE age > 20",
    "SELECT name FROM team WHERE city = 'Bonn'",
    "SELECT T1.name FROM team AS T1 JOIN player T2 ON T1.id = T2.team_id GROUP BY T1.id ORDER BY count(*) DESC LIMIT 1",
)
PARTS = (
    "SELECT", "name", "*", "count(*)", "FROM", "team", "player", "JOIN", "ON", "team.id = player.team_id", "WHERE",
    "city = 'Rome'", "age > 20", "GROUP BY city", "ORDER BY name", "LIMIT 1", "UNION", "(", ")", ";", "--", "''",
    "nope", "WITH a AS (SELECT * FROM team)", "a", "<answer>", "</answer>", "<think>", "</think>", "```", "\n",
)  # fmt: skip
SPACES = (" ", "\n", "\t  ", " /* c */ ", " -- c\n")
RANGES = {
    "execution": (0.0, 1.0), "reward_sql": (0.0, 1.0), "reasoning_sql": (0.0, 9.0), "think2sql": (0.0, 1.0),
    "tabular_reasoning": (0.0, 4.0), "retoolsql": (0.0, 3.8), "progress_sql": (-0.7, 4.0),
}  # fmt: skip
WRAPS: dict[str, Callable[[str], str]] = {
    "bare": str, "fence": "```sql\n{}\n```".format, "reasoning": "<reasoning>r</reasoning><answer>{}</answer>".format,
    "think": "<think>t</think>\n<answer>{}</answer>".format, "sql": "<sql>{}</sql>".format,
    "twice": "<answer>SELECT 1</answer> <answer>{}</answer>".format,
}  # fmt: skip

fragments = st.lists(st.sampled_from(PARTS), min_size=0, max_size=12).map(" ".join)
near = st.builds(
    lambda gold, old, new: gold.replace(old, new),
    st.sampled_from(GOLDS), st.sampled_from(("name", "'Rome'", "team", "20", "WHERE", "DESC", " ")),
    st.sampled_from(("name", "city", "'rome'", "player", "25", "ORDER BY", "", "  ")),
)  # fmt: skip
sqls = st.one_of(st.sampled_from(GOLDS), near, fragments, st.text(max_size=30))
completions = st.builds(lambda sql, wrap: WRAPS[wrap](sql), sqls, st.sampled_from(sorted(WRAPS)))
quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def verdict(paper: str, completion: str, gold: str, root: Path, judged: float = 0.0) -> Verdict:
    """The verdict with a judge that says `judged` of everything wrong."""
    reward = importlib.import_module(f"verl_sql.reward_fns.{paper}").REWARD
    options = Settings(db_root=str(root), timeout=0.5)
    sample = reward.sample(completion, gold, {"db_id": "league"}, options)
    said = dict.fromkeys(("score", "grade"), judged) if reward.judges else {}
    return reward.verdict(replace(sample, judged={**said, **({"changes": 0.0} if said else {})}), options)


@pytest.mark.parametrize("paper", RANGES)
def test_range_and_keys(paper: str, league_root: Path):
    low, high = RANGES[paper]
    keys = set(verdict_dict(verdict(paper, "", GOLDS[0], league_root)))

    @quick
    @given(completions, st.sampled_from(GOLDS), st.floats(0, 1))
    def holds(completion: str, gold: str, judged: float) -> None:
        found = verdict(paper, completion, gold, league_root, judged)
        assert low - 1e-9 <= found.score <= high + 1e-9
        assert set(verdict_dict(found)) == keys
        assert found.acc in (0.0, 1.0)

    holds()


@pytest.mark.parametrize("paper", ["execution", "reward_sql", "reasoning_sql", "retoolsql", "progress_sql"])
def test_no_wrong_sql_above_a_right_one(paper: str, league_root: Path):
    worst_right: dict[str, Any] = {"score": float("inf")}
    best_wrong: dict[str, Any] = {"score": float("-inf")}

    @quick
    @given(completions, st.sampled_from(GOLDS), st.floats(0, 1))
    def collect(completion: str, gold: str, judged: float) -> None:
        found = verdict(paper, completion, gold, league_root, judged)
        if found.acc and found.score < worst_right["score"]:
            worst_right.update(score=found.score, completion=completion)
        if not found.acc and found.score > best_wrong["score"]:
            best_wrong.update(score=found.score, completion=completion)

    collect()
    for gold in GOLDS:  # at least one right and one wrong are always there
        for completion in (gold, f"<answer>{gold}</answer>", f"<answer>{gold} AND 0</answer>"):
            found = verdict(paper, completion, gold, league_root, 1.0)
            kept = worst_right if found.acc else best_wrong
            if (found.score < kept["score"]) == bool(found.acc):
                kept.update(score=found.score, completion=completion)
    assert best_wrong["score"] <= worst_right["score"] + 1e-9, (best_wrong, worst_right)


@pytest.mark.parametrize("paper", ["reasoning_sql", "retoolsql", "progress_sql", "think2sql"])
def test_keyword_case_and_white_space_do_not_count(paper: str, league_root: Path):
    @quick
    @given(st.sampled_from(GOLDS), st.sampled_from(GOLDS), st.sampled_from(SPACES), st.booleans())
    def holds(pred: str, gold: str, space: str, upper: bool) -> None:
        pieces = re.split(r"('[^']*')", pred)
        changed = "".join(
            piece if piece.startswith("'") else (piece.upper() if upper else piece.lower()).replace(" ", space)
            for piece in pieces
        )
        one, two = (verdict(paper, f"<answer>{sql}</answer>", gold, league_root) for sql in (pred, changed))
        assert two.terms == pytest.approx(one.terms)
        assert two.score == pytest.approx(one.score)

    holds()
