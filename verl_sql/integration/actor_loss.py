"""The actor's loss with what a batch brings along: this step's KL coefficient, and the steps of its tokens.

verl 0.9.1 fixes `kl_loss_coef` when a worker starts and shows a policy loss neither the batch's meta data nor its other
fields (verl/workers/utils/losses.py, `ppo_loss`). `install` wraps that function where a worker is about to take it;
whatever the trainer put into the batch as KL_COEFFICIENT or STEP_FIELD then reaches the loss. Without them nothing
changes.
"""

import copy
import functools
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

from verl_sql.integration.step_advantage import segment_means

KL_COEFFICIENT = "verl_sql_kl_loss_coef"
"""Meta data of a batch: the coefficient of its KL loss."""

STEP_FIELD = "verl_sql_step_ids"
"""Field of a batch, nested as the responses are: the step of each token, −1 outside."""

STEP_RATIO = "verl_sql_step_ratio"
"""The policy loss below, as `actor_rollout_ref.actor.policy_loss.loss_mode` names it."""

_steps: ContextVar[Tensor | None] = ContextVar("verl_sql_steps", default=None)


def install(losses: Any) -> None:
    """Replace `ppo_loss` of verl's module of losses by one that looks at the batch first."""
    losses.ppo_loss = informed(losses.ppo_loss)


def informed(ppo_loss: Any) -> Any:
    """`ppo_loss` with the coefficient and the steps of its batch in force while it runs."""

    @functools.wraps(ppo_loss)
    def wrapped(config: Any, model_output: Any, data: Any, dp_group: Any = None) -> tuple[Tensor, dict[str, Any]]:
        token = _steps.set(_padded_steps(data))
        try:
            return ppo_loss(_with_coefficient(config, data), model_output, data, dp_group)
        finally:
            _steps.reset(token)

    return wrapped


def _with_coefficient(config: Any, data: Any) -> Any:
    """The actor's configuration with the batch's KL coefficient; verl reports the one it used as `actor/kl_coef`."""
    if KL_COEFFICIENT not in data.keys():  # noqa: SIM118 - a TensorDict iterates over rows
        return config
    changed = copy.copy(config)
    object.__setattr__(changed, "kl_loss_coef", float(data[KL_COEFFICIENT]))
    return changed


def _padded_steps(data: Any) -> Tensor | None:
    """The steps of a micro-batch, shape (R, T), or None when the trainer sent none."""
    if STEP_FIELD not in data.keys():  # noqa: SIM118
        return None
    steps = data[STEP_FIELD]
    return steps.to_padded_tensor(-1) if steps.is_nested else steps


def step_ratio_loss(
    old_log_prob: Tensor,
    log_prob: Tensor,
    advantages: Tensor,
    response_mask: Tensor,
    loss_agg_mode: str = "seq-mean-token-mean",
    config: Any = None,
    rollout_is_weights: Tensor | None = None,
) -> tuple[Tensor, dict[str, Any]]:
    """Reward-SQL's objective with its ratio per step: the geometric mean of a step's token ratios, then PPO's clip.

    `actor_rollout_ref.actor.policy_loss.loss_mode=verl_sql_step_ratio`. Tokens outside the steps form one segment.

    Raises:
        RuntimeError: the batch brings no steps.
    """
    from verl.trainer.ppo.core_algos import compute_policy_loss_vanilla

    steps_RT = _steps.get()
    if steps_RT is None:
        raise RuntimeError("loss_mode=verl_sql_step_ratio needs the steps that a verl_sql trainer sends with a batch")
    width = log_prob.shape[1]
    steps_RT = torch.nn.functional.pad(steps_RT, (0, max(0, width - steps_RT.shape[1])), value=-1)[:, :width]
    mean_RT = segment_means(log_prob - old_log_prob, steps_RT, response_mask)
    return compute_policy_loss_vanilla(
        old_log_prob,
        old_log_prob + mean_RT,
        advantages,
        response_mask,
        loss_agg_mode,
        config,
        rollout_is_weights,
    )
