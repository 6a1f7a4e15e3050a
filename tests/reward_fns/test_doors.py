"""The ways a verl user reaches a reward function: by package, by path, copied elsewhere, without torch."""

import asyncio
import importlib
import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from verl_sql.rewards.loading import RewardNotFound, load_reward

PAPERS = ("execution", "reward_sql", "reasoning_sql", "think2sql", "tabular_reasoning", "retoolsql", "progress_sql")
WITH_ASYNC = ("reasoning_sql", "tabular_reasoning", "reward_sql")
GOLD = "SELECT name FROM team"
ARGUMENTS = ["data_source", "solution_str", "ground_truth", "extra_info"]


@pytest.mark.parametrize("paper", PAPERS)
def test_signature(paper: str):
    module = importlib.import_module(f"verl_sql.reward_fns.{paper}")
    assert list(inspect.signature(module.compute_score).parameters)[:4] == ARGUMENTS
    assert not inspect.iscoroutinefunction(module.compute_score)
    assert hasattr(module, "compute_score_async") is (paper in WITH_ASYNC)


@pytest.mark.parametrize("paper", WITH_ASYNC)
def test_async_gives_the_same(paper: str, league_root: Path):
    module = importlib.import_module(f"verl_sql.reward_fns.{paper}")
    assert inspect.iscoroutinefunction(module.compute_score_async)
    arguments = {"data_source": "t", "solution_str": f"<sql>{GOLD}</sql>", "ground_truth": GOLD}
    arguments |= {"extra_info": {"db_id": "league"}, "db_root": str(league_root)}
    assert asyncio.run(module.compute_score_async(**arguments)) == module.compute_score(**arguments)


@pytest.mark.parametrize("paper", PAPERS)
def test_a_copy_works_by_path(paper: str, league_root: Path, tmp_path: Path):
    source = importlib.import_module(f"verl_sql.reward_fns.{paper}").__file__
    copy = Path(shutil.copy(str(source), tmp_path / "mine.py"))
    row = load_reward(str(copy)).compute_score("t", GOLD, GOLD, {"db_id": "league"}, db_root=str(league_root))
    assert {"score", "acc", "pred", "outcome"} <= row.keys()


def test_by_package_name(league_root: Path):
    module = load_reward("pkg://verl_sql.reward_fns.execution")
    assert module.compute_score("t", GOLD, GOLD, {"db_id": "league"}, db_root=str(league_root))["score"] == 1.0
    with pytest.raises(RewardNotFound, match="nonsense"):
        load_reward("nonsense")


def test_no_torch_and_no_verl_are_imported():
    code = "import sys\n" + "".join(f"import verl_sql.reward_fns.{paper}\n" for paper in PAPERS)
    code += "print([m for m in ('torch', 'verl', 'ray', 'openai') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("paper", PAPERS)
def test_weights_come_from_reward_kwargs(paper: str, league_root: Path):
    module = importlib.import_module(f"verl_sql.reward_fns.{paper}")
    none = dict.fromkeys(module.REWARD.terms, 0.0)
    arguments = ("t", f"<answer>{GOLD}</answer>", GOLD, {"db_id": "league"})
    assert module.compute_score(*arguments, db_root=str(league_root), weights=none)["score"] == 0.0
    with pytest.raises(ValueError, match="no such term"):
        module.compute_score(*arguments, db_root=str(league_root), weights={"nonsense": 1.0})
