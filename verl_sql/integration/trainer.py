"""verl's PPO trainer with reward components in its training metrics, as `trainer.v1.trainer_mode=verl_sql_sync`.

A mixin, so that verl's other trainer modes can have the same. Written against verl 0.9.1's V1 trainer, whose private
methods `_compute_advantage` and `_build_replay_buffer` it extends (verl/trainer/ppo/v1/trainer_base.py); there is no
public hook that sees the samples' `extra_fields`.
"""

from typing import Any

import transfer_queue as tq
from omegaconf import DictConfig
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer
from verl.trainer.ppo.v1.trainer_base import register_trainer
from verl.trainer.ppo.v1.trainer_sync import PPOTrainerSync

from verl_sql.integration.reward_metrics import reward_metrics


class RewardMetricsMixin:
    """Logs what the reward function returned, at each training step; put it before a verl trainer class.

    `base_mode` is the mode of the class it is mixed into: verl compares `trainer_mode` with it in several places.
    """

    base_mode: str
    config: DictConfig
    global_steps: int
    total_training_steps: int

    def __init__(self, config: DictConfig) -> None:
        config.trainer.v1.trainer_mode = self.base_mode
        super().__init__(config)  # type: ignore[call-arg]

    def _build_replay_buffer(self) -> ReplayBuffer:
        """verl polls for finished rollouts every 2 s, most of a tiny policy's step: `+trainer.v1.poll_interval=0.1`."""
        buffer = super()._build_replay_buffer()  # type: ignore[misc]
        buffer.poll_interval = self.config.trainer.v1.get("poll_interval", buffer.poll_interval)
        return buffer

    def _compute_advantage(self, batch: KVBatchMeta, metrics: dict[str, Any]) -> KVBatchMeta:
        metrics.update(reward_metrics(_reward_infos(batch)))
        print(f"step {self.global_steps} of {self.total_training_steps}: {_headline(metrics)}", flush=True)
        return super()._compute_advantage(batch, metrics)  # type: ignore[misc]


def _headline(metrics: dict[str, Any]) -> str:
    """The few reward metrics that a console line has room for."""
    shown = {"accuracy": "reward/acc/mean", "executed": "reward/executed/mean", "steps a chain": "reward/n_steps/mean"}
    return ", ".join(f"{name} {metrics[key]:.3f}" for name, key in shown.items() if key in metrics)


def _reward_infos(batch: KVBatchMeta) -> list[dict[str, Any]]:
    """What `compute_score` returned, a dict a sample; padding rows, which verl adds to fill a batch, are left out."""
    data = tq.kv_batch_get(keys=batch.keys, partition_id=batch.partition_id, select_fields=["extra_fields"])
    padding = [tag.get("is_padding", False) for tag in batch.tags]
    fields = zip(data["extra_fields"], padding, strict=True)
    return [extra.get("reward_extra_info", {}) for extra, is_padding in fields if not is_padding]


@register_trainer("verl_sql_sync")
class SQLTrainerSync(RewardMetricsMixin, PPOTrainerSync):
    """verl's synchronous trainer with reward metrics."""

    base_mode = "sync"
