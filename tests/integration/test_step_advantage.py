"""Step-level advantages against a plain loop that follows the formulas, and the loss that comes of them."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

torch = pytest.importorskip("torch")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from verl_sql.integration.step_advantage import (  # noqa: E402
    EPSILON,
    OUTSIDE,
    StepCredit,
    cocte_step_grpo,
    deepseekmath_process,
    group_advantages,
    grpo,
    segment_weights,
)


@dataclass(frozen=True)
class Row:
    """One rollout as the formulas see it: reward, question, steps as (first token, one past the last, score)."""

    reward: float
    group: int
    length: int
    steps: tuple[tuple[int, int, float], ...] = ()
    scored: bool = True
    counts: bool = True
    final: int | None = None

    def step_of(self, token: int) -> int:
        return next((j for j, (start, end, _) in enumerate(self.steps) if start <= token < end), OUTSIDE)


def tensors(rows: Sequence[Row], width: int | None = None):
    """rewards_R, groups_R, mask_RT and the StepCredit of some rows, padded to `width`."""
    width = width or max(row.length for row in rows)
    most = max(len(row.steps) for row in rows)
    scores = [[s for *_, s in row.steps] + [9.0] * (most - len(row.steps)) for row in rows]
    credit = StepCredit(
        step_RT=torch.tensor([[row.step_of(t) for t in range(width)] for row in rows]),
        scores_RS=torch.tensor(scores, dtype=torch.float64).reshape(len(rows), most),
        n_steps_R=torch.tensor([len(row.steps) if row.scored else 0 for row in rows]),
        finals_R=torch.tensor([i if row.final is None else row.final for i, row in enumerate(rows)]),
        counts_R=torch.tensor([row.counts for row in rows]),
    )
    mask = torch.tensor([[float(t < row.length) for t in range(width)] for row in rows])
    return torch.tensor([row.reward for row in rows]), torch.tensor([row.group for row in rows]), mask, credit


def looped_advantage(rows: Sequence[Row], i: int) -> float:
    """Â_i by the formula."""
    final = rows[i] if rows[i].final is None else rows[rows[i].final]
    group = [row.reward for row in rows if row.group == final.group and row.counts and row.final is None]
    if not final.counts or len(set(group)) < 2:
        return 0.0
    return (final.reward - statistics.fmean(group)) / (statistics.stdev(group) + EPSILON)


def looped_cocte(rows: Sequence[Row], step_mean: bool) -> list[list[float]]:
    """§5.3 written out, token by token."""
    out = []
    for i, row in enumerate(rows):
        advantage = looped_advantage(rows, i)
        segments: dict[int, int] = {}
        for t in range(row.length):
            segments[row.step_of(t)] = segments.get(row.step_of(t), 0) + 1
        line = []
        for t in range(row.length):
            j = row.step_of(t)
            value = advantage
            if j != OUTSIDE and row.scored and row.final is None:
                s = row.steps[j][2]
                value = advantage * s if advantage > 0 else advantage * (1 - s)
            weight = row.length / (len(segments) * segments[j]) if step_mean else 1.0
            line.append(value * weight)
        out.append(line)
    return out


def looped_process(rows: Sequence[Row]) -> list[list[float]]:
    """A.3.1 written out: Eq. 1 collects R, Eq. 2 normalises, Eq. 3 sums the later steps."""
    out = []
    for row in rows:
        final = row if row.final is None else rows[row.final]
        R = [
            s for r in rows if r.group == final.group and r.counts and r.final is None for *_, s in r.steps if r.scored
        ]
        mean, std = (statistics.fmean(R), statistics.stdev(R)) if len(set(R)) > 1 else (0.0, math.inf)
        steps = final.steps if final.counts and final.scored and len(set(R)) > 1 else ()
        normal = [(end - 1 if row.final is None else math.inf, (s - mean) / (std + EPSILON)) for _, end, s in steps]
        out.append([math.fsum(value for end, value in normal if end >= t) for t in range(row.length)])
    return out


def padded(lines: list[list[float]], width: int):
    return torch.tensor([line + [0.0] * (width - len(line)) for line in lines])


@st.composite
def row_batches(draw, sessions: bool = False):
    """Up to four questions with up to five rollouts each: gaps between steps, chains of different length, prose."""
    rows: list[Row] = []
    for group in range(draw(st.integers(1, 4))):
        for _ in range(draw(st.integers(1, 5))):
            cuts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=9))
            at, steps = draw(st.integers(0, 2)), []
            for k, size in enumerate(cuts[:-1]):
                if k % 2 == 0:
                    score = draw(st.sampled_from([0.0, 1.0, 0.25, 0.7]))
                    steps.append((at, at + size, score))
                at += size
            length = at + draw(st.integers(0 if steps else 1, 3))
            row = Row(
                draw(st.sampled_from([0.0, 0.1, 0.5, 1.0, 1.9])),
                group,
                length,
                tuple(steps),
                draw(st.booleans()),
                draw(st.booleans()),
            )
            if sessions and draw(st.booleans()):
                rows.append(Row(row.reward, group, draw(st.integers(1, 6)), (), False, row.counts, len(rows) + 1))
            rows.append(row)
    return rows


@given(row_batches(sessions=True), st.booleans())
@settings(max_examples=50, deadline=None)
def test_cocte_equals_the_loop(rows: list[Row], step_mean: bool) -> None:
    rewards, groups, mask, credit = tensors(rows)
    found = cocte_step_grpo(rewards, groups, mask, credit, step_mean=step_mean)
    torch.testing.assert_close(found, padded(looped_cocte(rows, step_mean), mask.shape[1]), rtol=1e-5, atol=1e-6)


@given(row_batches(sessions=True))
@settings(max_examples=50, deadline=None)
def test_process_supervision_equals_the_loop(rows: list[Row]) -> None:
    _, groups, mask, credit = tensors(rows)
    found = deepseekmath_process(groups, mask, credit)
    torch.testing.assert_close(found, padded(looped_process(rows), mask.shape[1]), rtol=1e-5, atol=1e-5)


@given(row_batches())
@settings(max_examples=25, deadline=None)
def test_grpo_gives_every_token_its_rows_advantage(rows: list[Row]) -> None:
    rewards, groups, mask, credit = tensors(rows)
    expected = padded([[looped_advantage(rows, i)] * row.length for i, row in enumerate(rows)], mask.shape[1])
    torch.testing.assert_close(grpo(rewards, groups, mask, credit), expected)


@given(row_batches())
@settings(max_examples=25, deadline=None)
def test_rows_sum_to_the_mean_of_their_segments_and_the_mask_holds(rows: list[Row]) -> None:
    rewards, groups, mask, credit = tensors(rows)
    weights = segment_weights(credit.step_RT, mask)
    torch.testing.assert_close(weights.sum(1), mask.sum(1).double())
    plain = cocte_step_grpo(rewards, groups, mask, credit, step_mean=False)
    meant = cocte_step_grpo(rewards, groups, mask, credit)
    assert not meant[mask == 0].any()
    for i, row in enumerate(rows):
        segments: dict[int, list[float]] = {}
        for t in range(row.length):
            segments.setdefault(row.step_of(t), []).append(float(plain[i, t]))
        expected = statistics.fmean(statistics.fmean(values) for values in segments.values())
        assert float(meant[i].sum()) / row.length == pytest.approx(expected, abs=1e-5)


@given(row_batches())
@settings(max_examples=25, deadline=None)
def test_signs_and_bounds(rows: list[Row]) -> None:
    """On the negative side, too, a step's share of Â lies in [0, 1]: never a positive advantage in a bad sample."""
    rewards, groups, mask, credit = tensors(rows)
    found = cocte_step_grpo(rewards, groups, mask, credit, step_mean=False)
    for i, row in enumerate(rows):
        advantage = looped_advantage(rows, i)
        inside = found[i, : row.length]
        assert bool((inside * advantage >= 0).all())
        assert bool((inside.abs() <= abs(advantage) + 1e-5).all())


CHAIN = ((1, 3, 1.0), (4, 6, 0.0))  # a step of score 1 and one of score 0, prose before, between and after


def test_a_hand_worked_pair() -> None:
    rewards, groups, mask, credit = tensors([Row(2.0, 0, 8, CHAIN), Row(0.0, 0, 8, CHAIN)])
    up, down = cocte_step_grpo(rewards, groups, mask, credit, step_mean=False)
    a = 1 / (math.sqrt(2) + EPSILON)  # rewards 2 and 0: mean 1, std √2
    assert up.tolist() == pytest.approx([a, a, a, a, 0, 0, a, a])
    assert down.tolist() == pytest.approx([-a, 0, 0, -a, -a, -a, -a, -a])
    meant = cocte_step_grpo(rewards, groups, mask, credit)[0]  # T = 8, M = 3, segments of 2, 2 and 4 tokens
    assert meant.tolist() == pytest.approx([a * 2 / 3, a * 4 / 3, a * 4 / 3, a * 2 / 3, 0, 0, a * 2 / 3, a * 2 / 3])


def test_a_hand_worked_process_reward() -> None:
    _, groups, mask, credit = tensors([Row(0.0, 0, 8, CHAIN), Row(0.0, 0, 3, ((0, 2, 0.5),))])
    first, second = deepseekmath_process(groups, mask, credit)  # R = {1, 0, 0.5}: mean 0.5, std 0.5
    s = 0.5 / (0.5 + EPSILON)
    assert first.tolist() == pytest.approx([0, 0, 0, -s, -s, -s, 0, 0])
    assert second.tolist() == pytest.approx([0.0] * 8)


@pytest.mark.parametrize("rewards", [[0.7], [0.1, 0.1, 0.1], [1 / 3] * 7])
def test_group_of_one_and_equal_rewards_give_exactly_nothing(rewards: list[float]) -> None:
    rows = [Row(reward, 0, 8, CHAIN) for reward in rewards]
    assert not cocte_step_grpo(*tensors(rows)).any()
    assert not grpo(*tensors(rows)).any()


def test_rows_that_do_not_count_neither_get_nor_give() -> None:
    rows = [Row(1.0, 0, 4), Row(0.0, 0, 4), Row(5.0, 0, 4, counts=False)]
    found = grpo(*tensors(rows))
    assert found[:2, 0].tolist() == pytest.approx([1 / math.sqrt(2), -1 / math.sqrt(2)], rel=1e-5)
    assert not found[2].any()


def test_without_scores_every_token_gets_the_rows_advantage() -> None:
    rows = [Row(1.0, 0, 8, CHAIN, scored=False), Row(0.0, 0, 8, CHAIN, scored=False)]
    found = cocte_step_grpo(*tensors(rows), step_mean=False)
    torch.testing.assert_close(found, grpo(*tensors(rows)))


@pytest.mark.parametrize("score", [-0.01, 1.01, math.nan])
def test_a_score_outside_the_unit_interval_is_refused(score: float) -> None:
    with pytest.raises(ValueError, match=r"step scores must lie in \[0, 1\]"):
        cocte_step_grpo(*tensors([Row(1.0, 0, 4, ((0, 2, score),)), Row(0.0, 0, 4)]))


def test_a_batch_without_steps() -> None:
    rows = [Row(1.0, 0, 3), Row(0.0, 0, 2)]
    torch.testing.assert_close(cocte_step_grpo(*tensors(rows)), grpo(*tensors(rows)))
    assert not deepseekmath_process(*tensors(rows)[1:]).any()


def test_division_by_the_deviation_can_be_left_out() -> None:
    found = group_advantages(torch.tensor([3.0, 1.0]), torch.tensor([0, 0]), torch.tensor([True, True]), by_std=False)
    assert found.tolist() == [1.0, -1.0]


def clipped_loss(log_ratio, advantages, mask):
    """PPO's clipped loss of each token."""
    ratio = log_ratio.exp()
    return torch.maximum(-advantages * ratio, -advantages * ratio.clamp(0.8, 1.2)) * mask


def paper_loss(log_ratio, plain, mask, rows: Sequence[Row]) -> float:
    """Mean over a segment's tokens, then over the row's segments, then over the rows."""
    losses = clipped_loss(log_ratio, plain, mask)
    per_row = []
    for i, row in enumerate(rows):
        segments: dict[int, list[float]] = {}
        for t in range(row.length):
            segments.setdefault(row.step_of(t), []).append(float(losses[i, t]))
        per_row.append(statistics.fmean(statistics.fmean(values) for values in segments.values()))
    return statistics.fmean(per_row)


@given(row_batches(), st.integers(1, 4), st.integers(0, 2**31))
@settings(max_examples=25, deadline=None)
def test_the_step_mean_is_exact_in_any_micro_batches(rows: list[Row], micro: int, seed: int) -> None:
    """verl's seq-mean-token-mean over micro-batches of any size, each padded by its own longest row."""
    rewards, groups, mask, credit = tensors(rows)
    log_ratio = torch.randn(mask.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) * 0.3
    weighted = cocte_step_grpo(rewards, groups, mask, credit)
    total = 0.0
    for first in range(0, len(rows), micro):
        part = slice(first, first + micro)
        width = max(row.length for row in rows[part])
        losses = clipped_loss(log_ratio[part, :width], weighted[part, :width], mask[part, :width])
        total += float((losses.sum(1) / mask[part, :width].sum(1)).sum()) / len(rows)
    plain = cocte_step_grpo(rewards, groups, mask, credit, step_mean=False)
    assert total == pytest.approx(paper_loss(log_ratio, plain, mask, rows), abs=1e-5)
