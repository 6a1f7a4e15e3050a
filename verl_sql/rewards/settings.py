"""What `reward.custom_reward_function.reward_kwargs` may say, read and checked."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache, lru_cache
from typing import Any

from verl_sql.rewards.execution import BINARY_COMPARATORS

log = logging.getLogger(__name__)

GOLD_POLICIES = ("neutral", "raise")
_FROM_VERL = frozenset({"reward_router_address", "reward_model_tokenizer"})  # verl adds them to every call


@dataclass(frozen=True, slots=True)
class Settings:
    """The options every reward function takes.

    Attributes:
        db_root: folder of the databases; without it VERL_SQL_DB_ROOT, then `extra_info["db_path"]`.
        timeout: seconds a query may run.
        comparator: `bird_set`, `bag`, `ordered` or `test_suite`: what "right" means.
        workers: processes of the executor; only the first call of a process can choose.
        weights: weights that replace a reward's own, by term.
        style: where the answer stands, when not where the paper puts it (`auto`, `answer_tag`, `sql_tag`, `fence`,
            `bare`).
        on_gold_error: `neutral` gives every completion of a failing gold the same score, 0; `raise` stops.
        judge: the judge's endpoint and behaviour, see `verl_sql.rewards.judge.config`.
        router: `host:port` of verl's own reward-model router (`reward_router_address`).
        gold_cache: `golds.jsonl` of data preparation, whose failing golds are not run again; without it
            VERL_SQL_GOLD_CACHE, then none.
    """

    db_root: str | None = None
    timeout: float = 30.0
    comparator: str = "bird_set"
    workers: int | None = None
    weights: Mapping[str, float] = field(default_factory=dict)
    style: str | None = None
    on_gold_error: str = "neutral"
    judge: Mapping[str, Any] | None = None
    router: str | None = None
    gold_cache: str | None = None

    @classmethod
    def from_kwargs(cls, kwargs: Mapping[str, Any]) -> "Settings":
        """Read reward_kwargs; a name nobody knows is warned about once.

        Raises:
            ValueError: a value that no reward understands.
        """
        try:
            return _remembered(tuple(kwargs.items()))
        except TypeError:  # a value that cannot be hashed, such as weights
            return _settings(kwargs)


@lru_cache(maxsize=32)
def _remembered(items: tuple[tuple[str, Any], ...]) -> Settings:
    """The settings of kwargs that were seen before."""
    return _settings(dict(items))


def _settings(kwargs: Mapping[str, Any]) -> Settings:
    """Read and check reward_kwargs."""
    known = {f.name for f in fields(Settings)}
    warn_unknown(frozenset(kwargs) - known - _FROM_VERL)
    given = {k: v for k, v in kwargs.items() if k in known and v is not None}
    settings = Settings(**{"router": kwargs.get("reward_router_address"), **given})
    _require("comparator", settings.comparator, BINARY_COMPARATORS)
    _require("on_gold_error", settings.on_gold_error, GOLD_POLICIES)
    return settings


def merged_weights(own: Mapping[str, float], replaced: Mapping[str, float]) -> dict[str, float]:
    """A reward's weights with those of reward_kwargs on top.

    Raises:
        ValueError: a weight for a term the reward does not have.
    """
    unknown = set(replaced) - set(own)
    if unknown:
        raise ValueError(f"no such term: {sorted(unknown)}; this reward has {sorted(own)}")
    return {name: float(replaced.get(name, weight)) for name, weight in own.items()}


@cache
def warn_unknown(names: frozenset[str]) -> None:
    """Say once for each set of names that a reward function got arguments it does not use."""
    if names:
        log.warning("reward_kwargs not used by this reward: %s", ", ".join(sorted(names)))


def _require(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise when an option has a value outside its list."""
    if value not in allowed:
        raise ValueError(f"{name}={value!r} is none of {', '.join(allowed)}")
