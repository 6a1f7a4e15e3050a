"""Our advantage estimators in verl's registry: `cocte_step_grpo`, `deepseekmath_process` and `verl_sql_grpo`.

verl 0.9.1 calls an estimator with rewards, mask, groups and the configuration alone, so the trainer opens a context
with the batch's steps around the call (`steps_of_batch`).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from omegaconf import DictConfig
from torch import Tensor
from verl.trainer.ppo.core_algos import register_adv_est, register_policy_loss

from verl_sql.integration import step_advantage
from verl_sql.integration.actor_loss import STEP_RATIO, step_ratio_loss
from verl_sql.integration.step_advantage import StepCredit
from verl_sql.integration.step_batch import Needs, StepRows, group_numbers, step_credit

COCTE, PROCESS, PLAIN = "cocte_step_grpo", "deepseekmath_process", "verl_sql_grpo"
STEP_ESTIMATORS = {COCTE: Needs.SPANS, PROCESS: Needs.SCORES, PLAIN: Needs.NOTHING}
"""Each of ours, with what it reads of a sample."""

STEP_MEAN_MODE = "seq-mean-token-mean"
"""The one aggregation of verl's under which the mean over segments can be folded into the advantage exactly."""

_rows: ContextVar[StepRows | None] = ContextVar("verl_sql_step_rows", default=None)


@contextmanager
def steps_of_batch(rows: StepRows) -> Iterator[None]:
    """The steps of the batch whose advantages are computed inside."""
    token = _rows.set(rows)
    try:
        yield
    finally:
        _rows.reset(token)


def check_config(config: DictConfig) -> None:
    """Refuse settings under which a step-level estimator would not compute what it says.

    Raises:
        ValueError: one sentence that says what to change.
    """
    estimator = config.algorithm.adv_estimator
    if estimator not in STEP_ESTIMATORS:
        return
    if config.algorithm.use_kl_in_reward:
        raise ValueError(
            f"adv_estimator={estimator} reads one reward a sample: set algorithm.use_kl_in_reward=false and use the KL "
            "loss of the actor"
        )
    mode = config.actor_rollout_ref.actor.loss_agg_mode
    if estimator == COCTE and config.algorithm.get("step_mean", True) and mode != STEP_MEAN_MODE:
        raise ValueError(
            f"the mean over steps (algorithm.step_mean) is exact under actor_rollout_ref.actor.loss_agg_mode="
            f"{STEP_MEAN_MODE} only, not under {mode}; set that, or +algorithm.step_mean=false"
        )


def _credit(mask_RT: Tensor) -> StepCredit:
    """The steps of the batch that is being computed."""
    rows = _rows.get()
    if rows is None:
        raise RuntimeError("step-level estimators need a verl_sql trainer: set trainer.v1.trainer_mode=verl_sql_sync")
    return step_credit(rows, mask_RT.shape[1])


def _estimator(name: str) -> Callable[[Callable[..., Tensor]], Callable[..., Tensor]]:
    """Register a function of (rewards_R, groups_R, mask_RT, credit, config) under `name`."""

    def decorate(compute: Callable[..., Tensor]) -> Callable[..., Tensor]:
        @register_adv_est(name)
        def estimate(
            token_level_rewards: Tensor, response_mask: Tensor, config: Any, index: Sequence[Any], **_: Any
        ) -> tuple[Tensor, Tensor]:
            mask_RT = response_mask.float()
            rewards_R = token_level_rewards.sum(-1)
            advantages = compute(rewards_R, group_numbers(index), mask_RT, _credit(mask_RT), config)
            return advantages, advantages

        return compute

    return decorate


def _by_std(config: Any) -> bool:
    """verl's own switch for GRPO's division."""
    return bool(config.get("norm_adv_by_std_in_grpo", True))


@_estimator(COCTE)
def _cocte(rewards_R: Tensor, groups_R: Tensor, mask_RT: Tensor, credit: StepCredit, config: Any) -> Tensor:
    """Reward-SQL §5.3; `+algorithm.step_mean=false` leaves the 1/K out."""
    step_mean = bool(config.get("step_mean", True))
    return step_advantage.cocte_step_grpo(rewards_R, groups_R, mask_RT, credit, _by_std(config), step_mean)


@_estimator(PROCESS)
def _process(rewards_R: Tensor, groups_R: Tensor, mask_RT: Tensor, credit: StepCredit, config: Any) -> Tensor:
    """Reward-SQL Appendix A.3.1."""
    return step_advantage.deepseekmath_process(groups_R, mask_RT, credit)


@_estimator(PLAIN)
def _plain(rewards_R: Tensor, groups_R: Tensor, mask_RT: Tensor, credit: StepCredit, config: Any) -> Tensor:
    """GRPO that leaves skipped samples out of their group's statistics."""
    return step_advantage.grpo(rewards_R, groups_R, mask_RT, credit, _by_std(config))


register_policy_loss(STEP_RATIO)(step_ratio_loss)
