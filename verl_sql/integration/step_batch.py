"""From what the samples of a batch bring along to the tensors of `step_advantage`, and what a run logs about them.

A sample is read from its `extra_fields`: `step_spans` of the agent loop `verl_sql_steps`, and in `reward_extra_info`,
what the reward function returned, `step_scores` (a JSON list, an empty text where none was asked for) and `skipped`.
"""

import json
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import Any

import torch
from torch import Tensor

from verl_sql.integration.step_advantage import OUTSIDE, StepCredit

Span = tuple[int, int]


class StepsMissing(ValueError):
    """The samples lack what a step-level estimator reads; the message says what to set."""


@dataclass(frozen=True, slots=True)
class StepSample:
    """The steps of one row.

    Attributes:
        spans: token span of each step in the response.
        scores: score of each step, None where none was asked for.
        counts: whether the row takes part in its group (no padding, not skipped).
        final: whether its reward is its own: the last row of its session.
    """

    spans: tuple[Span, ...]
    scores: tuple[float, ...] | None
    counts: bool
    final: bool


@dataclass(frozen=True, slots=True)
class StepRows:
    """The rows of a batch, in its order.

    Attributes:
        samples: one a row.
        finals: index of the row that speaks for the row's session.
    """

    samples: tuple[StepSample, ...]
    finals: tuple[int, ...]


class Needs(StrEnum):
    """What an estimator reads of a sample."""

    NOTHING = "nothing"
    """Its reward alone."""
    SPANS = "spans"
    """Where its steps stand, and their scores if there are any."""
    SCORES = "scores"
    """Its steps' scores."""


def read_rows(
    keys: Sequence[str],
    extra_fields: Sequence[Mapping[str, Any]],
    padding: Sequence[bool],
    needs: Needs = Needs.SPANS,
) -> StepRows:
    """The steps of a batch.

    Args:
        keys: verl's keys, `<uid>_<session>_<index>`; of a session with several rows the last one speaks.
        extra_fields: what the agent loop and the reward left, one a key.
        padding: whether a row only fills the batch up.
        needs: what must be there.

    Raises:
        StepsMissing: a row that counts lacks what is needed, or has more or fewer scores than steps.
    """
    finals = final_rows(keys)
    samples = []
    for row, (key, extra) in enumerate(zip(keys, extra_fields, strict=True)):
        final = finals[row] == row
        info = extra.get("reward_extra_info") or {}
        counts = not padding[row] and not _is_skipped(info)
        if counts and final and needs is not Needs.NOTHING:
            samples.append(_read_sample(key, extra, info, needs))
        else:
            samples.append(StepSample((), None, counts, final))
    return StepRows(tuple(samples), finals)


def _read_sample(key: str, extra: Mapping[str, Any], info: Mapping[str, Any], needs: Needs) -> StepSample:
    """The steps of a row that counts and has a reward of its own."""
    if "step_spans" not in extra:
        raise StepsMissing(
            "the rollouts have no step_spans: set actor_rollout_ref.rollout.agent.default_agent_loop=verl_sql_steps"
        )
    if "step_scores" not in info:
        raise StepsMissing("the reward function returns no step_scores: reward_fns/reward_sql.py is one that does")
    spans = tuple((int(start), int(end)) for start, end in extra["step_spans"])
    scores = tuple(map(float, json.loads(info["step_scores"]))) if info["step_scores"] else None
    if scores is None and needs is Needs.SCORES:
        raise StepsMissing("no process reward model was asked: set reward_kwargs.mode to prm or prm+rule_or")
    if scores is not None and len(scores) != len(spans):
        raise StepsMissing(f"{key} has {len(spans)} steps in its tokens and {len(scores)} step scores")
    return StepSample(spans, scores, True, True)


def _is_skipped(info: Mapping[str, Any]) -> bool:
    """Whether the reward says that a sample is to be left out (its gold failed, its judge was silent)."""
    return bool(info.get("skipped", 0.0) == 1.0)


def final_rows(keys: Sequence[str]) -> tuple[int, ...]:
    """For each key the row of its session's highest index."""
    last: dict[str, tuple[int, int]] = {}
    sessions = []
    for row, key in enumerate(keys):
        session, _, index = key.rpartition("_")
        sessions.append(session)
        last[session] = max(last.get(session, (-1, row)), (int(index), row))
    return tuple(last[session][1] for session in sessions)


def step_credit(rows: StepRows, width: int) -> StepCredit:
    """The tensors of a batch whose responses are padded to `width` tokens."""
    samples = rows.samples
    step_RT = torch.full((len(samples), width), OUTSIDE, dtype=torch.int64)
    most = max((len(sample.scores or ()) for sample in samples), default=0)
    scores_RS = torch.zeros(len(samples), most, dtype=torch.float64)
    for row, sample in enumerate(samples):
        for step, (start, end) in enumerate(sample.spans):
            step_RT[row, start:end] = step
        if sample.scores:
            scores_RS[row, : len(sample.scores)] = torch.tensor(sample.scores, dtype=torch.float64)
    return StepCredit(
        step_RT=step_RT,
        scores_RS=scores_RS,
        n_steps_R=torch.tensor([len(sample.scores or ()) for sample in samples]),
        finals_R=torch.tensor(rows.finals),
        counts_R=torch.tensor([sample.counts for sample in samples]),
    )


def group_numbers(uids: Iterable[Hashable]) -> Tensor:
    """The groups' names as numbers from 0, in the order of their first row."""
    numbers: dict[Hashable, int] = {}
    return torch.tensor([numbers.setdefault(uid, len(numbers)) for uid in uids])


def step_metrics(rows: StepRows, advantages: Sequence[Sequence[float]], shown: int = 4) -> dict[str, float]:
    """What a run logs about its steps.

    Args:
        rows: the batch.
        advantages: the advantage of each token, one row each.
        shown: how many step positions get metrics of their own.

    Returns:
        `steps/with_spans` (share of the samples), `steps/segments/mean` (steps and the tokens outside as one more),
        `steps/score/mean`, `steps/score/position_<j>`, and for each sign of the advantage the share of the steps at a
        position that have it: `steps/advantage_positive/position_<j>`, `steps/advantage_negative/position_<j>`.
    """
    counted = [(s, line) for s, line in zip(rows.samples, advantages, strict=True) if s.counts and s.final]
    values: dict[str, list[float]] = defaultdict(list)
    for sample, line in counted:
        inside = sum(end - start for start, end in sample.spans)
        values["with_spans"].append(float(bool(sample.spans)))
        values["segments/mean"].append(float(len(sample.spans) + (inside < len(line))))
        for j, score in enumerate(sample.scores or ()):
            values["score/mean"].append(score)
            if j < shown:
                values[f"score/position_{j + 1}"].append(score)
        for j, (start, _) in enumerate(sample.spans[:shown]):
            values[f"advantage_positive/position_{j + 1}"].append(float(line[start] > 0))
            values[f"advantage_negative/position_{j + 1}"].append(float(line[start] < 0))
    return {f"steps/{name}": fmean(found) for name, found in values.items()}


def dump_line(
    key: str, sample: StepSample, ids: Sequence[int], mask: Sequence[int], advantages: Sequence[float], text: str
) -> str:
    """One row as JSON: what reached the actor, beside the text that it is about."""
    record = {
        "key": key,
        "counts": sample.counts,
        "final": sample.final,
        "spans": sample.spans,
        "scores": sample.scores,
        "ids": list(ids),
        "mask": list(mask),
        "advantages": list(advantages),
        "text": text,
    }
    return json.dumps(record, ensure_ascii=False)
