"""Where rollouts come from and who scores their steps, from the keys of `data_prep/conf/rollouts.yaml`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verl_sql.generation.endpoint import EndpointSampler
from verl_sql.generation.offline import VllmSampler
from verl_sql.generation.sampler import Sampler, Sampling
from verl_sql.integration.rollout_scoring import RewardMode, Scoring
from verl_sql.integration.rollouts import RolloutSettings
from verl_sql.prm.scoring import EndpointScorer, StepScorer, TransformersScorer, VllmScorer


def rollout_settings_from(values: Mapping[str, Any]) -> RolloutSettings:
    """The settings of a plain dict, as hydra gives it.

    Raises:
        ValueError: a value cannot be meant, or something is missing.
        FileNotFoundError: the process reward model's folder is not there.
    """
    if bool(values["model"]) == bool(values["endpoint"]["base_url"]):
        raise ValueError("name the policy, either by model=… or by endpoint.base_url=…")
    if not values["db_root"]:
        raise ValueError("no folder of databases: give db_root=… or set VERL_SQL_DB_ROOT")
    mode, folder = RewardMode(values["mode"]), values["prm"]["folder"]
    if mode is not RewardMode.RULE_OR and not folder:
        raise ValueError(f"mode={mode} needs the process reward model: prm.folder=…")
    if folder and not Path(folder).is_dir():
        raise FileNotFoundError(f"there is no process reward model {folder}")
    root = Path(values["db_root"]).expanduser()
    return RolloutSettings(
        policy=values["model"] or f"{values['endpoint']['base_url']} {values['endpoint']['model'] or ''}".strip(),
        sampling=Sampling(**{**values["sampling"], "stop": tuple(values["sampling"]["stop"] or ())}),
        scoring=Scoring(mode, root, values["comparator"], values["timeout"], values["workers"]),
        prm=folder or "",
        questions=values["questions"],
        with_prompt=values["with_prompt"],
    )


def make_sampler(values: Mapping[str, Any]) -> Sampler:
    """The policy: a vLLM engine in this process, or an endpoint.

    Raises:
        SamplingError: it cannot be loaded.
    """
    if values["model"]:
        return VllmSampler(values["model"], **{k: v for k, v in values["engine"].items() if v is not None})
    return EndpointSampler(**values["endpoint"])


def make_scorer(prm: Mapping[str, Any]) -> StepScorer:
    """The process reward model: loaded here with transformers or vLLM, or behind a server.

    Raises:
        ValueError: an engine that is none.
    """
    if prm["base_url"]:
        return EndpointScorer(prm["base_url"], prm["model"], tokenizer=prm["folder"])
    if prm["engine"] == "vllm":
        return VllmScorer(prm["folder"], **prm["options"])
    if prm["engine"] != "transformers":
        raise ValueError(f"prm.engine={prm['engine']} is neither transformers nor vllm")
    return TransformersScorer(prm["folder"], **prm["options"])
