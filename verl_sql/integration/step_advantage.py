"""Step-level advantages (Reward-SQL §5.3, DeepSeekMath's process supervision, plain GRPO) as functions of tensors.

No trainer and no tokenizer here. Shape suffixes: `_R` rows (rollouts) of a batch, `_T` tokens of a response, `_S` steps
of a chain. Statistics are taken in double precision; what comes out has the mask's shape and is float32.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

EPSILON = 1e-6
"""Added to the standard deviation, as verl's GRPO does."""

OUTSIDE = -1
"""The step of a token that lies in none."""


@dataclass(frozen=True, slots=True)
class StepCredit:
    """What a batch knows about its steps.

    Attributes:
        step_RT: the step each token lies in (int64), OUTSIDE for tokens outside every step.
        scores_RS: each step's score in [0, 1]; what stands beyond a row's last step is not read.
        n_steps_R: how many steps of a row have a score (int64); 0 where none was asked for.
        finals_R: the row that speaks for a row's session, itself in a single-turn batch: of a session with several
            rows only the last one has a reward of its own, and its advantage is the others' too.
        counts_R: whether a row takes part (bool); padding and skipped samples do not, and get advantage 0.
    """

    step_RT: Tensor
    scores_RS: Tensor
    n_steps_R: Tensor
    finals_R: Tensor
    counts_R: Tensor

    @property
    def speaks_R(self) -> Tensor:
        """Rows whose reward enters the statistics."""
        return self.counts_R & (self.finals_R == torch.arange(len(self.finals_R)))

    @property
    def scored_RS(self) -> Tensor:
        """Which entries of `scores_RS` are scores of a row that speaks."""
        positions_S = torch.arange(self.scores_RS.shape[1])
        return (positions_S < self.n_steps_R[:, None]) & self.speaks_R[:, None]


def group_advantages(values_R: Tensor, groups_R: Tensor, counts_R: Tensor, by_std: bool = True) -> Tensor:
    """Â = (value − mean) / (std + 1e-6) over the group, GRPO's normalisation; std is torch.std's (n − 1).

    Args:
        values_R: a reward (or a step's score) each.
        groups_R: the group each belongs to, numbered from 0 (int64).
        counts_R: which of them count; the others get 0 and are left out of mean and std.
        by_std: False leaves the division out.

    Returns:
        Shape (R,), float64. A group of one, and one whose values are all equal, gets 0.
    """
    values, counted = values_R.double(), counts_R.double()
    n_groups = int(groups_R.max()) + 1 if len(groups_R) else 0

    def total(per_row: Tensor) -> Tensor:
        return torch.zeros(n_groups, dtype=torch.float64).index_add(0, groups_R, per_row)

    size_G = total(counted)
    mean_G = total(torch.where(counts_R, values, 0.0)) / size_G.clamp(min=1)
    deviation_R = torch.where(counts_R, values - mean_G[groups_R], 0.0)
    std_G = (total(deviation_R.square()) / (size_G - 1).clamp(min=1)).sqrt()
    scaled_R = deviation_R / (std_G[groups_R] + EPSILON) if by_std else deviation_R
    return torch.where(_varies(values, groups_R, counts_R, n_groups)[groups_R], scaled_R, 0.0)


def _varies(values_R: Tensor, groups_R: Tensor, counts_R: Tensor, n_groups: int) -> Tensor:
    """Whether a group holds two different values that count; exact, where a standard deviation would be rounded."""
    unset = torch.full((n_groups,), torch.inf, dtype=torch.float64)
    lowest = unset.scatter_reduce(0, groups_R, torch.where(counts_R, values_R, torch.inf), "amin")
    highest = (-unset).scatter_reduce(0, groups_R, torch.where(counts_R, values_R, -torch.inf), "amax")
    return highest > lowest


def grpo(rewards_R: Tensor, groups_R: Tensor, mask_RT: Tensor, credit: StepCredit, by_std: bool = True) -> Tensor:
    """Plain GRPO: every token of a row gets the row's Â.

    Args:
        rewards_R: R_i, one a row.
        groups_R: the question of each row, numbered from 0.
        mask_RT: 1 for the policy's own tokens.
        credit: which rows count and speak; spans and scores are not read.
        by_std: whether Â is divided by the group's standard deviation.

    Returns:
        Advantages, shape (R, T).
    """
    return (_row_advantages(rewards_R, groups_R, credit, by_std)[:, None] * mask_RT).float()


def cocte_step_grpo(
    rewards_R: Tensor,
    groups_R: Tensor,
    mask_RT: Tensor,
    credit: StepCredit,
    by_std: bool = True,
    step_mean: bool = True,
) -> Tensor:
    """Reward-SQL §5.3: step j of row i gets Â_i·s_ij if Â_i > 0 and Â_i·(1 − s_ij) if Â_i < 0.

    Tokens outside every step (final query, prose, tags, end of turn) get Â_i, and so does every token of a row without
    scores.

    Args:
        rewards_R: R_i, one a row.
        groups_R: the question of each row, numbered from 0.
        mask_RT: 1 for the policy's own tokens.
        credit: the steps.
        by_std: whether Â is divided by the group's standard deviation.
        step_mean: multiply by `segment_weights`, so that a mean over the row's tokens becomes the paper's mean over its
            segments (1/K).

    Returns:
        Advantages, shape (R, T).

    Raises:
        ValueError: a score outside [0, 1]: (1 − s) would change its sign.
    """
    _require_unit_interval(credit)
    advantages_R = _row_advantages(rewards_R, groups_R, credit, by_std)
    advantages_RT = advantages_R[:, None] * step_factors(advantages_R, credit) * mask_RT
    if step_mean:
        advantages_RT = advantages_RT * segment_weights(credit.step_RT, mask_RT)
    return advantages_RT.float()


def deepseekmath_process(groups_R: Tensor, mask_RT: Tensor, credit: StepCredit) -> Tensor:
    """DeepSeekMath's process supervision (Reward-SQL Appendix A.3.1, Eq. 1 to 3), the ablation that hacks its reward.

    s̃ = (s − mean(R)) / (std(R) + 1e-6) over all steps of the group, and token t gets Σ s̃_j over the steps that end at
    t or later; tokens after the last step get 0.

    Args:
        groups_R: the question of each row, numbered from 0.
        mask_RT: 1 for the policy's own tokens.
        credit: the steps and their scores.

    Returns:
        Advantages, shape (R, T).
    """
    scored_RS = credit.scored_RS
    groups_RS = groups_R[:, None].expand_as(scored_RS)
    normal_RS = group_advantages(credit.scores_RS.flatten(), groups_RS.flatten(), scored_RS.flatten())
    normal_RS = normal_RS.view(scored_RS.shape)
    ended_RT = torch.zeros(mask_RT.shape, dtype=torch.float64).scatter_add(1, _ends(credit), normal_RS)
    later_RT = ended_RT.flip(1).cumsum(1).flip(1)
    session_R = normal_RS.sum(1)[credit.finals_R]
    return (torch.where(credit.speaks_R[:, None], later_RT, session_R[:, None]) * mask_RT).float()


def step_factors(advantages_R: Tensor, credit: StepCredit) -> Tensor:
    """What Â_i is multiplied by at each token: s or 1 − s inside a scored step, 1 elsewhere; shape (R, T)."""
    scored = torch.nn.functional.pad(credit.scored_RS, (1, 0))  # column 0: outside
    scores = torch.nn.functional.pad(credit.scores_RS.double(), (1, 0))
    columns_RT = credit.step_RT.clamp(max=credit.scores_RS.shape[1] - 1) + 1
    scores_RT = scores.gather(1, columns_RT)
    factors_RT = torch.where(advantages_R[:, None] > 0, scores_RT, 1 - scores_RT)
    return torch.where(scored.gather(1, columns_RT), factors_RT, 1.0)


def segment_weights(step_RT: Tensor, mask_RT: Tensor) -> Tensor:
    """w = T / (M·|segment|): under these a mean over a row's T tokens is the mean over its M segments' means.

    The segments of a row are its steps and, if it has tokens outside them, those together as one more. Exact for the
    aggregation mode `seq-mean-token-mean` and for nothing else; since a clipped policy loss is proportional to the
    advantage, multiplying the advantage is multiplying the loss. The weights of a row sum to T.

    Args:
        step_RT: the step of each token, OUTSIDE for none.
        mask_RT: 1 for the tokens that the loss counts.

    Returns:
        Shape (R, T), float64, 0 where the mask is.
    """
    size_RT, parts_R = _segment_sizes(step_RT, mask_RT)
    shares_RT = size_RT * parts_R[:, None]
    return torch.where(mask_RT > 0, mask_RT.double().sum(1, keepdim=True) / shares_RT.clamp(min=1), 0.0)


def segment_means(values_RT: Tensor, step_RT: Tensor, mask_RT: Tensor) -> Tensor:
    """The mean of `values_RT` over the segment that each token lies in, as `segment_weights` cuts them.

    Returns:
        Shape (R, T), of the values' type, differentiable; tokens outside the mask get their segment's mean too.
    """
    segment_RT = step_RT + 1
    n_segments = int(segment_RT.max()) + 1 if segment_RT.numel() else 1
    sums_RM = values_RT.new_zeros(len(values_RT), n_segments).scatter_add(1, segment_RT, values_RT * mask_RT)
    size_RT, _ = _segment_sizes(step_RT, mask_RT)
    return sums_RM.gather(1, segment_RT) / size_RT.clamp(min=1).to(values_RT.dtype)


def _segment_sizes(step_RT: Tensor, mask_RT: Tensor) -> tuple[Tensor, Tensor]:
    """Tokens of the segment that each token lies in (R, T), and how many segments a row has (R,)."""
    segment_RT = step_RT + 1
    n_segments = int(segment_RT.max()) + 1 if segment_RT.numel() else 1
    empty_RM = torch.zeros(len(mask_RT), n_segments, dtype=torch.float64, device=mask_RT.device)
    size_RM = empty_RM.scatter_add(1, segment_RT, mask_RT.double())
    return size_RM.gather(1, segment_RT), (size_RM > 0).sum(1)


def _row_advantages(rewards_R: Tensor, groups_R: Tensor, credit: StepCredit, by_std: bool) -> Tensor:
    """Â of each row: its session's."""
    return group_advantages(rewards_R, groups_R, credit.speaks_R, by_std)[credit.finals_R]


def _ends(credit: StepCredit) -> Tensor:
    """The last token of each step, shape (R, S); 0 for a step without tokens."""
    positions_RT = torch.arange(credit.step_RT.shape[1]).expand_as(credit.step_RT)
    wide = torch.zeros(len(credit.step_RT), credit.scores_RS.shape[1] + 1, dtype=torch.int64)
    columns_RT = credit.step_RT.clamp(max=credit.scores_RS.shape[1] - 1) + 1
    return wide.scatter_reduce(1, columns_RT, positions_RT, "amax")[:, 1:]


def _require_unit_interval(credit: StepCredit) -> None:
    """Raise when a score that is read lies outside [0, 1]."""
    scores = credit.scores_RS[credit.scored_RS]
    if not bool(((scores >= 0) & (scores <= 1)).all()):
        raise ValueError(f"step scores must lie in [0, 1], got {float(scores.min()):g} to {float(scores.max()):g}")
