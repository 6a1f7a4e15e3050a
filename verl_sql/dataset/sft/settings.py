"""What the making of an SFT or preference set was asked for."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from verl_sql.dataset.sft.preference import Pairing
from verl_sql.generation.sampler import Sampling
from verl_sql.sqltext.extract import AnswerStyle


class SetKind(StrEnum):
    """Kinds of sets."""

    CHAINS = "chains"
    """The questions' chains of CTEs (Reward-SQL's cold start)."""
    DISTILLED = "distilled"
    """A model's traces at execution accuracy 1.0 (Think2SQL; Tabular Reasoning's chains of thought)."""
    STAR = "star"
    """The same, with the gold as a hint where nothing was right (Reasoning-SQL)."""
    PRIVILEGED = "privileged"
    """Traces of a teacher that sees the gold (ReToolSQL)."""
    TRACES = "traces"
    """Traces made elsewhere, single or multi-turn, kept at execution accuracy 1.0."""
    REJECTION = "rejection"
    """Scored rollouts above a threshold (Reward-SQL)."""
    PREFERENCE = "preference"
    """Pairs of scored rollouts (Reward-SQL's DPO)."""


SAMPLED = frozenset({SetKind.DISTILLED, SetKind.STAR, SetKind.PRIVILEGED})
"""Kinds that ask a model."""
FROM_FILES = frozenset({SetKind.TRACES, SetKind.REJECTION, SetKind.PREFERENCE})
"""Kinds that read rollouts."""


@dataclass(frozen=True, slots=True)
class SetSettings:
    """One set.

    Attributes:
        kind: what to make.
        keep: rows or pairs a question at most; None for all.
        threshold: rejection: the reward that a rollout must exceed.
        diversity: rejection: edit distance that a chain must keep from better ones of its question, in [0, 1].
        margin: preference: how much better the chosen one must be.
        pairing: preference: which pairs.
        style: how answers are marked.
        comparator: which comparator must give 1.0.
        reasoning: whether a trace must reason.
        timeout: seconds a query may run.
        sampling: how traces are sampled.
        endpoint: keywords of `EndpointSampler`.
    """

    kind: SetKind
    keep: int | None = 1
    threshold: float = 1.0
    diversity: float = 0.0
    margin: float = 0.0
    pairing: Pairing = Pairing.BEST_WORST
    style: AnswerStyle = AnswerStyle.AUTO
    comparator: str = "bird_set"
    reasoning: bool = False
    timeout: float = 30.0
    sampling: Sampling = field(default_factory=lambda: Sampling(n=4, temperature=0.7, top_p=0.95, max_tokens=4096))
    endpoint: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, without the endpoint's key."""
        return asdict(self) | {"endpoint": {k: v for k, v in self.endpoint.items() if k != "api_key"}}


def set_settings_from(config: Mapping[str, Any]) -> SetSettings:
    """Settings from a plain dict, as hydra gives it.

    Raises:
        TypeError: a key is none of ours.
        ValueError: a value cannot be meant.
    """
    values = dict(config)
    sampling = dict(values.pop("sampling", None) or {})
    sampling["stop"] = tuple(sampling.get("stop") or ())
    return SetSettings(
        kind=SetKind(values.pop("kind")),
        pairing=Pairing(values.pop("pairing", Pairing.BEST_WORST)),
        style=AnswerStyle(values.pop("style", AnswerStyle.AUTO)),
        sampling=Sampling(**sampling),
        endpoint=dict(values.pop("endpoint", None) or {}),
        **values,
    )
