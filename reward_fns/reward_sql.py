"""Reward-SQL (chains of CTEs): the outcome reward OR, the process reward PR, or both (§5.1, §5.3, Table 5).

| mode | R_i | weight of PR | weight of OR |
|---|---|---|---|
| `rule_or` | OR: 1 if the results match by the comparator, default `bird_set` | 0 | 1 |
| `prm` | PR: mean of the step scores s_ij, 0 for SQL that breaks off or does not run | 1 | 0 |
| `prm+rule_or` | PR + OR, the paper's training reward | 1 | 1 |

Range [0, 1], [0, 1] and [0, 2]. `n_steps` is K, the number of CTEs (a query without CTE is one step, itself). Each step
is executed (`WITH c1 … cj SELECT * FROM cj`), rendered with its result, and judged by the process reward model (PRM):
`step_scores` is the JSON list of P(correct), one a whole step, for the estimators `cocte_step_grpo` and
`deepseekmath_process`; an empty text where no PRM was asked. The answer is a bare or a fenced chain.

A sample: gold `SELECT count(*) FROM singer`, completion `WITH a AS (SELECT * FROM singer) SELECT count(*) FROM a` ->
OR = 1, K = 1; a PRM that says 0.8 of the step gives PR = 0.8 and, in mode `prm+rule_or`, score 1.8.

A PRM is served by verl (`reward.reward_model.*`, `+prm=served`), stands at `prm.base_url`, or is loaded here from
`prm.folder`; a server that does not answer is asked again and then raises: that is never the policy's fault. In
validation it is not asked unless `prm.in_validation` is true, and the score is OR. With a PRM the agent loop must be
`verl_sql_steps`, which hands on the prompt that the PRM reads.

Use: `reward.custom_reward_function.path=<this file>` (or `pkg://verl_sql.reward_fns.reward_sql`), `name=`
`compute_score`, with a PRM `compute_score_async`; `reward_kwargs`: mode, prm, weights, db_root, timeout, comparator,
style, on_gold_error, workers (see verl_sql.rewards.settings and verl_sql.prm.process_reward).
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum
from typing import Any

from verl_sql.prm.process_reward import PRMSettings, ascore_steps, score_steps
from verl_sql.rewards.execution import execution
from verl_sql.rewards.reward import Reward, Term
from verl_sql.rewards.sample import Sample
from verl_sql.rewards.settings import Settings
from verl_sql.rewards.verdict import verdict_dict
from verl_sql.sqltext.chain import count_steps, split_chain
from verl_sql.sqltext.extract import AnswerStyle

WEIGHTS = {"rule_or": (0.0, 1.0), "prm": (1.0, 0.0), "prm+rule_or": (1.0, 1.0)}
"""Weight of PR and of OR, by mode."""

MODES = tuple(WEIGHTS)


def n_steps(sample: Sample) -> float:
    """K, the number of steps of the chain; 0 without an answer."""
    return float(count_steps(sample.sql)) if sample.sql else 0.0


def process_reward(sample: Sample) -> float:
    """PR, the mean step score (§5.1); 0 without a PRM, without a step, and for SQL that breaks off or does not run."""
    return sample.judged.get("process_reward", 0.0)


def prm_asked(sample: Sample) -> float:
    """1 when the PRM was to judge the sample: PR is 0 for want of a PRM otherwise."""
    return sample.judged.get("prm_asked", 0.0)


def _reward(mode: str) -> Reward:
    """The reward of a mode; the names of the terms are the same in each."""
    process, outcome = WEIGHTS[mode]
    return Reward(
        name="reward_sql",
        style=AnswerStyle.AUTO,
        terms={"process_reward": Term(process, process_reward), "outcome_reward": Term(outcome, execution)},
        facts={"n_steps": n_steps, "prm_asked": prm_asked},
    )


REWARDS = {mode: _reward(mode) for mode in MODES}
REWARD = REWARDS["rule_or"]


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    mode: str = "rule_or",
    prm: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """Score one completion for verl; the same keys for every sample.

    Raises:
        ValueError: a mode that is none of MODES, or a PRM that the settings do not name.
        PRMUnavailable: the PRM did not answer.
    """
    settings, model = Settings.from_kwargs(kwargs), PRMSettings.from_kwargs(prm, kwargs)
    reward = _rewarded(mode, model, extra_info)
    sample = reward.sample(solution_str, ground_truth, extra_info, settings)
    scores: Sequence[float] | None = None
    if _wants_prm(reward) and sample.final.comparison.gold.ok:
        scores = score_steps(model, sample.database, split_chain(sample.sql), extra_info or {}, settings.timeout)
    return _row(reward, sample, settings, scores)


async def compute_score_async(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    mode: str = "rule_or",
    prm: Mapping[str, Any] | None = None,
    **kwargs: Any,
) -> dict[str, Any]:
    """`compute_score` on verl's event loop: its thread pool is small, and a PRM is slow."""
    settings, model = Settings.from_kwargs(kwargs), PRMSettings.from_kwargs(prm, kwargs)
    reward = _rewarded(mode, model, extra_info)
    sample = await reward.asample(solution_str, ground_truth, extra_info, settings)
    scores: Sequence[float] | None = None
    if _wants_prm(reward) and sample.final.comparison.gold.ok:
        chain = split_chain(sample.sql)
        scores = await ascore_steps(model, sample.database, chain, extra_info or {}, settings.timeout)
    return _row(reward, sample, settings, scores)


def _rewarded(mode: str, model: PRMSettings, extra_info: Mapping[str, Any] | None) -> Reward:
    """The reward of a mode; in a validation that is to do without the PRM, that of the outcome."""
    if mode not in MODES:
        raise ValueError(f"mode={mode!r} is none of {', '.join(MODES)}")
    validates = bool((extra_info or {}).get("validate"))
    return REWARD if validates and not model.in_validation else REWARDS[mode]


def _wants_prm(reward: Reward) -> bool:
    """Whether PR counts."""
    return reward.terms["process_reward"].weight != 0


def _row(reward: Reward, sample: Sample, settings: Settings, scores: Sequence[float] | None) -> dict[str, Any]:
    """The dict for verl; `scores` is None when no PRM was asked."""
    if scores is not None:
        whole = sample.pred.ok and split_chain(sample.sql).complete
        process = fsum(scores) / len(scores) if whole and scores else 0.0
        sample = replace(sample, judged={"process_reward": process, "prm_asked": 1.0})
    shown = "" if scores is None else json.dumps([round(score, 6) for score in scores])
    return {**verdict_dict(reward.verdict(sample, settings)), "step_scores": shown}
