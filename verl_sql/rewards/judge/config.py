"""Where the judge is and how patient we are with it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

FAILURE_POLICIES = ("raise", "skip")


@dataclass(frozen=True, slots=True)
class JudgeConfig:
    """A judge's endpoint and behaviour; `reward_kwargs.judge.<name>` sets each.

    Attributes:
        base_url: of an OpenAI-compatible endpoint, ending in `/v1`; else JUDGE_BASE_URL, else verl's reward router.
        model: its name there; else JUDGE_MODEL, else the first one the endpoint lists.
        api_key: else JUDGE_API_KEY.
        timeout: seconds one request may take.
        concurrency: requests of one process in flight at once.
        retries: further tries after a failed request and after an unusable reply, each counted apart, with back-off.
        backoff: seconds before the first try again; doubles each time.
        max_tokens: length of a reply.
        json_mode: ask the endpoint for a JSON object (`response_format`); switch off where it does not know it.
        cache: folder of remembered verdicts; else JUDGE_CACHE, else ~/.cache/verl_sql/judge.
        on_failure: `raise` stops the run when no usable verdict came; `skip` marks the sample.
    """

    base_url: str
    model: str = ""
    api_key: str = "none"
    timeout: float = 60.0
    concurrency: int = 32
    retries: int = 3
    backoff: float = 0.5
    max_tokens: int = 512
    json_mode: bool = True
    cache: str = ""
    on_failure: str = "raise"


def judge_config(options: Mapping[str, Any] | None, router: str | None = None) -> JudgeConfig | None:
    """The judge that reward_kwargs, the environment or verl's router name, in this order; None when none does.

    Args:
        options: `reward_kwargs.judge`.
        router: `host:port` of verl's reward-model router, as verl hands it to a reward function.

    Raises:
        ValueError: an option nobody knows, or a policy outside its list.
    """
    given = {key: value for key, value in dict(options or {}).items() if value is not None}
    unknown = set(given) - {f.name for f in fields(JudgeConfig)}
    if unknown:
        raise ValueError(f"judge has no option {sorted(unknown)}; it has {sorted(f.name for f in fields(JudgeConfig))}")
    base_url = given.get("base_url") or os.environ.get("JUDGE_BASE_URL") or (f"http://{router}/v1" if router else "")
    if not base_url:
        return None
    found = {"model": os.environ.get("JUDGE_MODEL", ""), "api_key": os.environ.get("JUDGE_API_KEY", "none")}
    config = JudgeConfig(**{**found, "cache": _default_cache(), **given, "base_url": str(base_url)})
    if config.on_failure not in FAILURE_POLICIES:
        raise ValueError(f"judge.on_failure={config.on_failure!r} is none of {', '.join(FAILURE_POLICIES)}")
    return config


def _default_cache() -> str:
    """The folder of remembered verdicts when nothing names one."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return os.environ.get("JUDGE_CACHE") or str(Path(home) / "verl_sql" / "judge")
