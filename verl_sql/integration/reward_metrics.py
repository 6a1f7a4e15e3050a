"""Reward components as training metrics: verl 0.9.1 logs them in validation only."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any


def reward_metrics(infos: Iterable[Mapping[str, Any]], prefix: str = "reward") -> dict[str, float]:
    """Means of what the reward function returned for a batch.

    Args:
        infos: one dict a sample, as `compute_score` returned it without `score`.
        prefix: the metrics are `<prefix>/<key>/mean`; the 0/1 shares `outcome_<name>` become `outcome/<name>`.

    Returns:
        One float for each numeric key, over the samples that have it; texts and lists are left out.
    """
    values: dict[str, list[float]] = defaultdict(list)
    for info in infos:
        for key, value in info.items():
            if isinstance(value, (bool, int, float)):
                values[key].append(float(value))
    return {_name(key, prefix): sum(found) / len(found) for key, found in values.items()}


def _name(key: str, prefix: str) -> str:
    outcome = key.removeprefix("outcome_")
    return f"{prefix}/{key}/mean" if outcome == key else f"outcome/{outcome}"
