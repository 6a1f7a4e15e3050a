"""verl's PPO trainer with step-level credit, reward metrics and a KL schedule: `trainer.v1.trainer_mode=verl_sql_sync`.

Mixins, so that verl's other trainer modes can have the same. Written against verl 0.9.1's V1 trainer, whose private
methods `_compute_advantage`, `_update_actor` and `_build_replay_buffer` they extend
(verl/trainer/ppo/v1/trainer_base.py); there is no public hook that sees the samples' `extra_fields`.
"""

import math
from pathlib import Path
from typing import Any

import torch
import transfer_queue as tq
from omegaconf import DictConfig, OmegaConf
from tensordict import TensorDict
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

from verl_sql.integration.actor_loss import KL_COEFFICIENT, STEP_FIELD, STEP_RATIO
from verl_sql.integration.estimators import STEP_ESTIMATORS, check_config, steps_of_batch
from verl_sql.integration.kl_schedule import KLSchedule
from verl_sql.integration.reward_metrics import group_metrics, lost_share, reward_metrics
from verl_sql.integration.shown_validation import ShownValidationMixin
from verl_sql.integration.step_batch import StepRows, dump_line, read_rows, step_credit, step_metrics

MAX_LOST_SHARE = 0.1
"""Rollouts of a step that may be lost; verl 0.9.1 logs a failed one (a reward that raises, too) and goes on."""


class RewardMetricsMixin:
    """Logs what the reward function returned, at each training step; put it before a verl trainer class.

    `base_mode` is the mode of the class it is mixed into: verl compares `trainer_mode` with it in several places.
    """

    base_mode: str
    config: DictConfig
    global_steps: int
    total_training_steps: int

    def __init__(self, config: DictConfig) -> None:
        """Build verl's trainer.

        Raises:
            ValueError: a reward model in the actor's pool; verl 0.9.1 would give the reward neither gold nor database.
        """
        model = config.reward.reward_model
        if model.enable and not model.enable_resource_pool:
            raise ValueError(
                "a reward model needs a pool of its own: set reward.reward_model.enable_resource_pool=true"
            )
        config.trainer.v1.trainer_mode = self.base_mode
        super().__init__(config)  # type: ignore[call-arg]

    def _build_replay_buffer(self) -> ReplayBuffer:
        """verl polls for finished rollouts every 2 s, most of a tiny policy's step: `+trainer.v1.poll_interval=0.1`."""
        buffer = super()._build_replay_buffer()  # type: ignore[misc]
        buffer.poll_interval = self.config.trainer.v1.get("poll_interval", buffer.poll_interval)
        return buffer

    def _compute_advantage(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        extra_fields = _extra_fields(batch)
        kept = [extra for extra, is_padding in zip(extra_fields, _padding(batch), strict=True) if not is_padding]
        infos = [extra.get("reward_extra_info", {}) for extra in kept]
        keys = [key for key, is_padding in zip(batch.keys, _padding(batch), strict=True) if not is_padding]
        metrics.update(reward_metrics(infos), **group_metrics(keys, infos))
        self._refuse_lost_rollouts(batch, metrics)
        print(f"step {self.global_steps} of {self.total_training_steps}: {_headline(metrics)}", flush=True)
        return super()._compute_advantage(batch, metrics)  # type: ignore[misc]

    def _refuse_lost_rollouts(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> None:
        """Stop when too many rollouts are missing: a reward that always fails would otherwise train on nothing."""
        keys = [key for key, is_padding in zip(batch.keys, _padding(batch), strict=True) if not is_padding]
        prompts = self.config.data.train_batch_size // getattr(self, "parameter_sync_step", 1)
        share = metrics["rollouts/lost"] = lost_share(keys, prompts * self.config.actor_rollout_ref.rollout.n)
        allowed = self.config.trainer.v1.get("max_lost_share", MAX_LOST_SHARE)
        if share > allowed:
            raise RuntimeError(
                f"{share:.0%} of the rollouts of step {self.global_steps} failed (generation or reward; the log has "
                f"the reason), more than trainer.v1.max_lost_share={allowed:g}"
            )


class StepCreditMixin:
    """Hands the steps of a batch to our estimators, logs them and, when told to, writes what reaches the actor.

    `+trainer.v1.verl_sql_dump_advantages=FOLDER` writes `<step>.jsonl`, one row each (`step_batch.dump_line`).
    """

    config: DictConfig
    global_steps: int
    tokenizer: Any

    def __init__(self, config: DictConfig) -> None:
        """Refuse settings under which a step-level estimator would not compute what it says."""
        check_config(config)
        super().__init__(config)  # type: ignore[call-arg]

    def _compute_advantage(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        needs = STEP_ESTIMATORS.get(self.config.algorithm.adv_estimator)
        if needs is None:
            return super()._compute_advantage(batch, metrics)  # type: ignore[misc]
        rows = read_rows(batch.keys, _extra_fields(batch), _padding(batch), needs)
        with steps_of_batch(rows):
            batch = super()._compute_advantage(batch, metrics)  # type: ignore[misc]
        sent = _read(batch, "responses", "response_mask", "advantages")
        metrics.update(step_metrics(rows, [line.tolist() for line in sent["advantages"].unbind()]))
        self._dump(batch, rows, sent)
        return self._with_steps(batch, rows, sent)

    def _with_steps(self, batch: KVBatchMeta, rows: StepRows, sent: TensorDict) -> KVBatchMeta:
        """The batch with the steps of its tokens, for the policy loss that takes a ratio a step.

        A batch names the fields that a worker gets, so it is the one that the queue gives back.
        """
        loss = self.config.actor_rollout_ref.actor.get("policy_loss") or {}
        if loss.get("loss_mode") != STEP_RATIO:
            return batch
        lengths = [len(line) for line in sent["responses"].unbind()]
        step_RT = step_credit(rows, max(lengths)).step_RT
        lines = [line[:length] for line, length in zip(step_RT, lengths, strict=True)]
        nested = torch.nested.as_nested_tensor(lines, layout=torch.jagged)
        fields = TensorDict({STEP_FIELD: nested}, batch_size=len(lines))
        return tq.kv_batch_put(keys=batch.keys, partition_id=batch.partition_id, fields=fields)

    def _dump(self, batch: KVBatchMeta, rows: StepRows, sent: TensorDict) -> None:
        """Write the batch as the actor gets it, if a folder is named."""
        folder = self.config.trainer.v1.get("verl_sql_dump_advantages")
        if not folder:
            return
        Path(folder).mkdir(parents=True, exist_ok=True)
        columns = [[line.tolist() for line in sent[name].unbind()] for name in ("responses", "response_mask")]
        advantages = [line.tolist() for line in sent["advantages"].unbind()]
        with (Path(folder) / f"{self.global_steps}.jsonl").open("w", encoding="utf-8") as file:
            for key, sample, ids, mask, line in zip(batch.keys, rows.samples, *columns, advantages, strict=True):
                text = self.tokenizer.decode(ids, skip_special_tokens=True)
                file.write(dump_line(key, sample, ids, mask, line, text) + "\n")


class KLScheduleMixin:
    """Changes the coefficient of the actor's KL loss by training step: `+algorithm.kl_schedule=[[0,0.005],…]`."""

    config: DictConfig
    global_steps: int

    def __init__(self, config: DictConfig) -> None:
        """Read the schedule.

        Raises:
            ValueError: it cannot be read, or the actor has no KL loss.
        """
        stages = config.algorithm.get("kl_schedule")
        if stages is not None and not config.actor_rollout_ref.actor.use_kl_loss:
            raise ValueError("algorithm.kl_schedule needs actor_rollout_ref.actor.use_kl_loss=true")
        self._kl_schedule = None if stages is None else KLSchedule.from_config(OmegaConf.to_container(stages))
        super().__init__(config)  # type: ignore[call-arg]

    def _update_actor(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        if self._kl_schedule is None:
            return super()._update_actor(batch, metrics)  # type: ignore[misc]
        wanted = self._kl_schedule.at(self.global_steps)
        batch.extra_info[KL_COEFFICIENT] = wanted
        batch = super()._update_actor(batch, metrics)  # type: ignore[misc]
        used = metrics["actor/kl_coef"]  # written by the worker's loss
        if not math.isclose(used, wanted, rel_tol=1e-6, abs_tol=1e-12):
            raise RuntimeError(
                f"the actor used the KL coefficient {used:g} at step {self.global_steps}, the schedule says "
                f"{wanted:g}: is the plugin loaded in the workers? (`verl-sql doctor` tells)"
            )
        return batch


def _headline(metrics: dict[str, Any]) -> str:
    """The few reward metrics that a console line has room for."""
    shown = {
        "accuracy": "reward/acc/mean",
        "process reward": "reward/process_reward/mean",
        "executed": "reward/executed/mean",
        "steps a chain": "reward/n_steps/mean",
        "right at once": "reward/first_right/mean",
        "repaired": "reward/repaired/mean",
        "spoiled": "reward/spoiled/mean",
    }
    return ", ".join(f"{name} {metrics[key]:.3f}" for name, key in shown.items() if key in metrics)


def _read(batch: KVBatchMeta, *fields: str) -> TensorDict:
    """Some fields of a batch, in the order of its keys."""
    return tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=list(fields))


def _extra_fields(batch: KVBatchMeta) -> list[dict[str, Any]]:
    """What the agent loop and the reward function left with each sample."""
    return [getattr(extra, "data", extra) for extra in _read(batch, "extra_fields")["extra_fields"]]


def _padding(batch: KVBatchMeta) -> list[bool]:
    """Which rows verl added to fill the batch up."""
    return [bool(tag.get("is_padding", False)) for tag in batch.tags]


@register_trainer("verl_sql_sync")
class SQLTrainerSync(ShownValidationMixin, RewardMetricsMixin, StepCreditMixin, KLScheduleMixin, PPOTrainerSync):
    """verl's synchronous trainer with reward metrics, step-level credit and a KL schedule."""

    base_mode = "sync"
