"""verl's group filter on `acc`: an all-fail group is dropped and refilled even when its shaped rewards differ."""

import uuid
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import pytest

pytestmark = pytest.mark.long

ALL_FAIL = [(0.1, 0.0), (0.7, 0.0), (0.3, 0.0)]
"""Rollouts as (shaped score, acc): the scores differ, nothing is right."""
MIXED = [(3.8, 1.0), (0.7, 0.0), (0.3, 0.0)]
ALL_RIGHT = [(3.8, 1.0), (3.3, 1.0), (3.8, 1.0)]


@pytest.fixture(scope="module")
def queue() -> Iterator[Any]:
    """A TransferQueue of its own, in a Ray of its own."""
    if find_spec("verl") is None:
        pytest.skip("verl is not installed")
    import ray
    import transfer_queue
    from omegaconf import OmegaConf

    ray.init(address="local", num_cpus=4, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    transfer_queue.init(OmegaConf.create({"backend": {"SimpleStorage": {"num_data_storage_units": 1}}}))
    yield transfer_queue
    transfer_queue.close()
    ray.shutdown()


def put_group(queue: Any, rollouts: Sequence[tuple[float, float]]) -> str:
    """A finished group as verl's agent loop leaves it."""
    import torch
    from verl.utils.tensordict_utils import list_of_dict_to_tensordict

    uid = uuid.uuid4().hex
    queue.kv_batch_put(
        keys=[uid], partition_id="train", tags=[{"is_prompt": True, "status": "finished", "global_steps": 1}]
    )
    fields = [
        {
            "rm_scores": torch.tensor([0.0, score]),
            "extra_fields": {"reward_extra_info": {"acc": acc, "score": score, "skipped": 0.0}},
        }
        for score, acc in rollouts
    ]
    queue.kv_batch_put(
        keys=[f"{uid}_{i}_0" for i in range(len(fields))],
        partition_id="train",
        fields=list_of_dict_to_tensordict(fields),
        tags=[{"status": "success"} for _ in fields],
    )
    return uid


def sampled(queue: Any, metric: str, first: Sequence[Any], refills: Sequence[Any]) -> tuple[set[str], list[str], Any]:
    """What verl's buffer samples as one batch of one group: its uids, the uids of all groups made, the metrics."""
    from omegaconf import OmegaConf
    from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer

    waiting = list(refills)
    made = [put_group(queue, first)]

    def refill(count: int) -> int:
        made.extend(put_group(queue, waiting.pop(0)) for _ in range(min(count, len(waiting))))
        return count

    buffer = ReplayBuffer(
        trainer_mode="sync",
        trainer_config=OmegaConf.create({}),
        max_off_policy_threshold=None,
        max_off_policy_strategy="drop",
        sampler_kwargs=OmegaConf.create({}),
        poll_interval=0.05,
        refill_fn=refill,
        filter_groups_metric=metric,
        train_batch_size=1,
        gen_batch_size=1,
    )
    batch, metrics = buffer.sample(global_steps=1, partition_id="train", batch_size=1)
    queue.kv_clear(keys=batch.keys, partition_id="train")
    return {key.split("_")[0] for key in batch.keys}, made, metrics


def test_an_all_fail_group_is_dropped_and_refilled(queue: Any) -> None:
    uids, made, metrics = sampled(queue, "acc", ALL_FAIL, [MIXED])
    assert uids == {made[1]}
    assert metrics["training/filter_groups/evicted_samples"] == 1


def test_a_group_that_is_all_right_is_dropped_too(queue: Any) -> None:
    uids, made, metrics = sampled(queue, "acc", ALL_RIGHT, [ALL_FAIL, MIXED])
    assert uids == {made[-1]}
    assert metrics["training/filter_groups/evicted_samples"] == 2


def test_a_filter_on_the_score_keeps_what_only_shaping_tells_apart(queue: Any) -> None:
    """The paper's form, `metric=reward`: its shaping noise would become a gradient."""
    uids, made, metrics = sampled(queue, "reward", ALL_FAIL, [MIXED])
    assert uids == {made[0]}
    assert "training/filter_groups/evicted_samples" not in metrics
