"""The reward functions under verl's own reward managers, loaded as verl loads them; skipped without verl."""

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="verl is not installed"),
]

GOLD = "SELECT name FROM team"
COMPLETION = f"<reasoning>r</reasoning><answer>{GOLD}</answer>"


class OneText:
    """A tokenizer that decodes every response to one text."""

    def decode(self, ids: Any, skip_special_tokens: bool = True) -> str:
        return COMPLETION


def reward_config(name: str, path: str, manager: str, root: Path) -> Any:
    from omegaconf import OmegaConf

    kwargs = {"db_root": str(root), "weights": {}, "judge": {"base_url": None}}
    custom = {"path": path, "name": name, "reward_kwargs": kwargs}
    return OmegaConf.create(
        {"reward": {"custom_reward_function": custom, "reward_manager": {"source": "register", "name": manager}}}
    )


def one_rollout() -> Any:
    import numpy as np
    import torch
    from verl import DataProto

    tensors = {"responses": torch.ones(1, 4, dtype=torch.long), "attention_mask": torch.ones(1, 8, dtype=torch.long)}
    other = {
        "data_source": np.array(["test"], dtype=object),
        "reward_model": np.array([{"style": "rule", "ground_truth": GOLD}], dtype=object),
        "extra_info": np.array([{"db_id": "league"}], dtype=object),
    }
    return DataProto.from_dict(tensors=tensors, non_tensors=other)


@pytest.mark.parametrize("manager", ["naive", "dapo"])
@pytest.mark.parametrize(
    ("paper", "name", "score"),
    [
        ("execution", "compute_score", 1.0),
        ("reward_sql", "compute_score", 1.0),
        ("reasoning_sql", "compute_score", 9.0),
        ("reasoning_sql", "compute_score_async", 9.0),
        ("retoolsql", "compute_score", 3.8),
        ("progress_sql", "compute_score", 3.5),
    ],
)
def test_manager_gives_the_score(manager: str, paper: str, name: str, score: float, league_root: Path):
    from verl.experimental.reward_loop.reward_manager import get_reward_manager_cls
    from verl.trainer.ppo.reward import get_custom_reward_fn

    config = reward_config(name, f"pkg://verl_sql.reward_fns.{paper}", manager, league_root)

    async def run() -> dict[str, Any]:
        found = get_reward_manager_cls(manager)(config, OneText(), get_custom_reward_fn(config))
        return await found.run_single(one_rollout())

    result = asyncio.run(run())
    assert result["reward_score"] == pytest.approx(score)
    assert result["reward_extra_info"]["outcome"] == "match"
