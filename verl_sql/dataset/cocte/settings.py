"""What a conversion of prepared questions was asked to do."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

THRESHOLDS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
"""Thresholds of the diversity filter that a report shows."""


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """Chains written by an LLM.

    Attributes:
        base_url: an OpenAI-compatible endpoint; None for no LLM.
        model: the model's name there; None takes the first that the endpoint lists.
        rows: "all" questions, or those that the rules left "unconverted".
        samples: completions a question.
        temperature: of sampling.
        max_tokens: longest completion.
        concurrency: requests on their way at once.
        timeout: seconds one request may take.
    """

    base_url: str | None = None
    model: str | None = None
    rows: str = "unconverted"
    samples: int = 4
    temperature: float = 0.8
    max_tokens: int = 2048
    concurrency: int = 16
    timeout: float = 120.0

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ValueError: `rows` is neither word, or `samples` is below 1.
        """
        if self.rows not in ("all", "unconverted"):
            raise ValueError(f"llm.rows={self.rows}: it is 'all' or 'unconverted'")
        if self.samples < 1:
            raise ValueError(f"llm.samples={self.samples} is below 1")


@dataclass(frozen=True, slots=True)
class ChainSettings:
    """A whole conversion.

    Attributes:
        rules: whether the rules are applied.
        timeout: seconds one query may run.
        diversity: threshold of the diversity filter in [0, 1]; 0 drops repeats of a text only.
        llm: chains written by an LLM.
    """

    rules: bool = True
    timeout: float = 30.0
    diversity: float = 0.2
    llm: SamplingSettings = field(default_factory=SamplingSettings)

    def __post_init__(self) -> None:
        """Refuse a threshold that is no distance.

        Raises:
            ValueError: `diversity` is outside [0, 1].
        """
        if not 0 <= self.diversity <= 1:
            raise ValueError(f"diversity={self.diversity} is not between 0 and 1")

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for the report and for telling whether earlier work may be taken up."""
        return asdict(self)


def chain_settings_from(config: Mapping[str, Any]) -> ChainSettings:
    """Settings from a plain dict, as hydra gives it.

    Raises:
        TypeError: a key is none of ours.
        ValueError: a value cannot be meant.
    """
    values = dict(config)
    return ChainSettings(llm=SamplingSettings(**(values.pop("llm", None) or {})), **values)
