"""Our estimators, losses and agent loop as verl itself finds and calls them."""

import importlib.util
import math
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(importlib.util.find_spec("verl") is None, reason="verl is not installed")
torch = pytest.importorskip("torch")

KEYS = ["q_0_0", "q_1_0", "pad_0_0"]
SCORES = ("[1.0, 0.0]", "[0.25]", "[]")
SPANS = ([[0, 2], [3, 5]], [[1, 4]], [])
MASK = [[1] * 8, [1] * 5 + [0] * 3, [0] * 8]


def config(estimator: str = "cocte_step_grpo", mode: str = "seq-mean-token-mean", **algorithm: Any) -> Any:
    from omegaconf import OmegaConf

    values = {"adv_estimator": estimator, "use_kl_in_reward": False, **algorithm}
    return OmegaConf.create({"algorithm": values, "actor_rollout_ref": {"actor": {"loss_agg_mode": mode}}})


def advantages(estimator: str, **algorithm: Any) -> Any:
    """The advantages of three rows, the last one padding, through verl's own `compute_advantage`."""
    import numpy as np
    from verl import DataProto
    from verl.trainer.ppo.ray_trainer import compute_advantage

    from verl_sql.integration.estimators import steps_of_batch
    from verl_sql.integration.step_batch import read_rows

    samples = [
        {"step_spans": spans, "reward_extra_info": {"step_scores": scores}}
        for spans, scores in zip(SPANS, SCORES, strict=True)
    ]
    rewards = torch.zeros(3, 8)
    rewards[0, 7], rewards[1, 4] = 2.0, 0.0
    data = DataProto.from_dict(
        tensors={"token_level_rewards": rewards, "response_mask": torch.tensor(MASK)},
        non_tensors={"uid": np.array([key.split("_")[0] for key in KEYS], dtype=object)},
    )
    with steps_of_batch(read_rows(KEYS, samples, [False, False, True])):
        return compute_advantage(data, estimator, config=config(estimator, **algorithm).algorithm).batch["advantages"]


def test_cocte_through_verl() -> None:
    found = advantages("cocte_step_grpo", step_mean=False)
    a = 1 / math.sqrt(2)
    assert found[0].tolist() == pytest.approx([a, a, a, 0, 0, a, a, a], rel=1e-5)
    assert found[1].tolist() == pytest.approx([-a, *[-0.75 * a] * 3, -a, 0, 0, 0], rel=1e-5)
    assert not found[2].any()


def test_process_supervision_and_plain_grpo_through_verl() -> None:
    process = advantages("deepseekmath_process")
    mean, std = 1.25 / 3, math.sqrt(((1 - 1.25 / 3) ** 2 + (1.25 / 3) ** 2 + (0.25 - 1.25 / 3) ** 2) / 2)
    one, none, quarter = ((s - mean) / std for s in (1.0, 0.0, 0.25))
    assert process[0].tolist() == pytest.approx([*[one + none] * 2, *[none] * 3, 0, 0, 0], rel=1e-5)
    assert process[1].tolist() == pytest.approx([quarter] * 4 + [0] * 4, rel=1e-5)
    plain = advantages("verl_sql_grpo")
    assert plain[0].tolist() == pytest.approx([1 / math.sqrt(2)] * 8, rel=1e-5)


def test_without_our_trainer_the_estimator_says_what_to_set() -> None:
    from verl.trainer.ppo.core_algos import get_adv_estimator_fn

    estimate = get_adv_estimator_fn("cocte_step_grpo")
    with pytest.raises(RuntimeError, match="trainer_mode=verl_sql_sync"):
        estimate(torch.zeros(1, 2), torch.ones(1, 2), config=config().algorithm, index=["q"])


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (config(use_kl_in_reward=True), "set algorithm.use_kl_in_reward=false"),
        (config("deepseekmath_process", use_kl_in_reward=True), "set algorithm.use_kl_in_reward=false"),
        (config(mode="token-mean"), "loss_agg_mode=seq-mean-token-mean only, not under token-mean"),
    ],
)
def test_settings_that_would_change_the_meaning_are_refused(changed: Any, said: str) -> None:
    from verl_sql.integration.estimators import check_config

    with pytest.raises(ValueError, match=said) as caught:
        check_config(changed)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "allowed",
    [
        config(),
        config(mode="token-mean", step_mean=False),
        config("grpo", "token-mean", use_kl_in_reward=True),
        config("deepseekmath_process", "token-mean"),
    ],
)
def test_other_settings_pass(allowed: Any) -> None:
    from verl_sql.integration.estimators import check_config

    check_config(allowed)
    assert allowed.algorithm.adv_estimator


def nested(lines: list[list[Any]], dtype: Any = None) -> Any:
    return torch.nested.as_nested_tensor([torch.tensor(line, dtype=dtype) for line in lines], layout=torch.jagged)


OLD = [[-1.0, -1.0, -1.0], [-2.0, -2.0]]
SHIFTS = [[0.1, 0.3, -0.2], [0.5, -0.1]]
STEPS = [[0, 0, -1], [-1, 0]]


def actor_loss(meta: dict[str, Any], advantages: list[list[float]], steps: Any = None, **actor: Any) -> Any:
    """verl's own ppo_loss, as a worker takes it, on a micro-batch of two responses of three and two tokens.

    Gives the loss, its metrics, and the gradient of each token's log-probability.
    """
    import verl.workers.utils.losses as losses
    from verl.utils import tensordict_utils as tu
    from verl.workers.config import FSDPActorConfig

    from verl_sql.integration.actor_loss import STEP_FIELD

    tensors = {
        "prompts": nested([[0], [0, 0]]),
        "responses": nested([[1, 2, 3], [4, 5]]),
        "input_ids": nested([[0, 1, 2, 3], [0, 0, 4, 5]]),
        "response_mask": nested([[1, 1, 1], [1, 1]]),
        "old_log_probs": nested(OLD),
        "ref_log_prob": nested([[-1.5, -1.0, -1.0], [-2.0, -1.0]]),
        "advantages": nested(advantages),
        **({} if steps is None else {STEP_FIELD: nested(steps)}),
    }
    data = tu.get_tensordict(
        tensors, non_tensor_dict={"dp_size": 1, "batch_num_tokens": 5, "global_batch_size": 2, **meta}
    )
    known = {"strategy": "fsdp2", "ppo_micro_batch_size_per_gpu": 2, "rollout_n": 1, **actor}
    made = FSDPActorConfig(loss_agg_mode="seq-mean-token-mean", **known)
    new = [torch.tensor([o + d for o, d in zip(*row, strict=True)]) for row in zip(OLD, SHIFTS, strict=True)]
    flat = torch.cat([new[0], torch.zeros(2), new[1], torch.zeros(1)]).requires_grad_()
    whole = torch.nested.nested_tensor_from_jagged(flat, torch.tensor([0, 4, 8]))  # position t predicts token t + 1
    loss, metrics = losses.ppo_loss(made, {"log_probs": whole}, data)
    loss.backward()
    return float(loss.detach()), metrics, [*flat.grad[:3].tolist(), *flat.grad[5:7].tolist()]


def test_the_batchs_coefficient_is_the_one_the_loss_uses() -> None:
    from verl_sql.integration.actor_loss import KL_COEFFICIENT

    found = {}
    for coefficient in (None, 0.0, 0.5):
        meta = {} if coefficient is None else {KL_COEFFICIENT: coefficient}
        loss, metrics, gradient = actor_loss(meta, [[1.0] * 3, [-1.0] * 2], use_kl_loss=True, kl_loss_coef=0.25)
        found[coefficient] = (loss, float(metrics["kl_coef"]), gradient[0])
    assert [used for _, used, _ in found.values()] == [0.25, 0.0, 0.5]
    half, none = found[0.5], found[0.0]
    assert half[0] > none[0]
    for part in (0, 2):  # loss and gradient
        assert found[None][part] == pytest.approx((none[part] + half[part]) / 2)


def by_hand(advantages: list[float], ratios: list[float]) -> list[float]:
    """PPO's clipped loss of each segment."""
    return [max(-a * r, -a * min(max(r, 0.8), 1.2)) for a, r in zip(advantages, ratios, strict=True)]


def weighted(advantages: list[list[float]]) -> list[list[float]]:
    """The advantages times the step mean's weights."""
    from verl_sql.integration.step_advantage import segment_weights

    mask, steps = torch.tensor([[1, 1, 1], [1, 1, 0]]), torch.tensor([STEPS[0], [*STEPS[1], -1]])
    weights = segment_weights(steps, mask)
    return [
        [a * float(w) for a, w in zip(line, row, strict=False)] for line, row in zip(advantages, weights, strict=True)
    ]


def test_the_step_mean_through_verls_loss() -> None:
    loss, _, _ = actor_loss({}, weighted([[1.0] * 3, [-1.0] * 2]))
    token = [by_hand([a] * len(d), [math.exp(x) for x in d]) for a, d in zip((1.0, -1.0), SHIFTS, strict=True)]
    first = ((token[0][0] + token[0][1]) / 2 + token[0][2]) / 2
    second = (token[1][0] + token[1][1]) / 2
    assert loss == pytest.approx((first + second) / 2, rel=1e-5)


def test_the_ratio_of_a_step_through_verls_loss() -> None:
    mode = {"policy_loss": {"loss_mode": "verl_sql_step_ratio"}}
    loss, _, gradient = actor_loss({}, weighted([[1.0] * 3, [-1.0] * 2]), STEPS, **mode)
    first = by_hand([1.0, 1.0], [math.exp(0.2), math.exp(-0.2)])
    second = by_hand([-1.0, -1.0], [math.exp(-0.1), math.exp(0.5)])
    assert loss == pytest.approx((sum(first) / 2 + sum(second) / 2) / 2, rel=1e-5)
    assert gradient[:2] == [0.0, 0.0]  # e^0.2 is over the clip
    assert gradient[2] == pytest.approx(-math.exp(-0.2) / 4, rel=1e-5)
    assert gradient[3] == pytest.approx(math.exp(0.5) / 4, rel=1e-5)


def test_the_ratio_of_a_step_needs_the_steps() -> None:
    with pytest.raises(RuntimeError, match="needs the steps"):
        actor_loss({}, [[1.0] * 3, [-1.0] * 2], policy_loss={"loss_mode": "verl_sql_step_ratio"})
