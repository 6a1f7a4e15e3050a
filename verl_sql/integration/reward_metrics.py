"""Reward components as training metrics: verl 0.9.1 logs them in validation only."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from verl_sql.rewards.verdict import Outcome

_SHARES = {f"outcome_{member}": str(member) for member in Outcome}


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
    """The metric that a key of the reward's dict becomes."""
    return f"outcome/{_SHARES[key]}" if key in _SHARES else f"{prefix}/{key}/mean"


def lost_share(keys: Iterable[str], expected: int) -> float:
    """The share of `expected` rollouts that verl's keys `<uid>_<session>_<index>` do not show."""
    return max(0.0, 1 - len({key.rpartition("_")[0] for key in keys}) / expected)


def group_metrics(keys: Iterable[str], infos: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """Shares of the groups that teach a group-relative estimator nothing.

    Args:
        keys: verl's keys `<uid>_<session>_<index>`, one a sample; the uid names the group.
        infos: what the reward function returned for each.

    Returns:
        `groups/no_variance`: all scores equal; `groups/all_right` and `groups/none_right` by `acc`. Empty without them.
    """
    groups: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for key, info in zip(keys, infos, strict=True):
        if "score" in info and "acc" in info:
            groups[key.rsplit("_", 2)[0]].append(info)
    if not groups:
        return {}
    flat = [len({info["score"] for info in group}) == 1 for group in groups.values()]
    right = [sum(info["acc"] for info in group) / len(group) for group in groups.values()]
    return {
        "groups/no_variance": sum(flat) / len(flat),
        "groups/all_right": sum(share == 1 for share in right) / len(right),
        "groups/none_right": sum(share == 0 for share in right) / len(right),
    }
