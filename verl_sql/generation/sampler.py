"""What every source of completions takes and gives."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

Message = dict[str, str]


class SamplingError(RuntimeError):
    """No completions came: the endpoint is away or refuses, or the engine failed."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample.

    Attributes:
        n: completions a prompt.
        temperature: 0 is greedy.
        top_p: nucleus.
        max_tokens: longest completion in tokens.
        seed: makes a run repeatable where the server respects it.
        stop: texts that end a completion; they are not part of it.
    """

    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int = 1024
    seed: int | None = None
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what cannot be sampled.

        Raises:
            ValueError: `n` or `max_tokens` is below 1, or `temperature` below 0.
        """
        if self.n < 1 or self.max_tokens < 1 or self.temperature < 0:
            raise ValueError(f"cannot sample n={self.n}, max_tokens={self.max_tokens}, temperature={self.temperature}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One chat to answer.

    Attributes:
        messages: the chat's messages, `role` and `content`.
        prefix: how the answer begins; completions continue it and do not repeat it.
    """

    messages: tuple[Message, ...] = field(default_factory=tuple)
    prefix: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled text.

    Attributes:
        text: what the model wrote, without the prompt's prefix.
        finished: False when the length limit cut it.
    """

    text: str
    finished: bool


class Sampler(Protocol):
    """A source of completions."""

    def sample(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        """`sampling.n` completions for each prompt, in the prompts' order.

        Raises:
            SamplingError: some prompt got none.
        """
        ...
