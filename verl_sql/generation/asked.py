"""An endpoint that is asked questions, as settings name it, and what may come instead of an answer; light to import."""

from dataclasses import dataclass, replace


class AskingError(RuntimeError):
    """The endpoint is away, refuses access, has no such model, or never gives a usable reply."""


@dataclass(frozen=True, slots=True)
class Asked:
    """An endpoint for questions with short answers, and how patient we are with it.

    Attributes:
        base_url: of an OpenAI-compatible endpoint, ending in `/v1`.
        model: its name there; None takes the first that the endpoint lists.
        key_from: the environment variable that holds the key; the key itself never stands in a config.
        concurrency: requests on their way at once.
        timeout: seconds one request may take.
        retries: further tries after a failed request (with the client's back-off) and after an unusable reply, each
            counted apart; replies are asked for greedily first, with some temperature then.
        max_tokens: longest reply.
        json_mode: ask for a JSON object (`response_format`); switch off where the endpoint does not know it.
    """

    base_url: str
    model: str | None = None
    key_from: str = "OPENAI_API_KEY"
    concurrency: int = 16
    timeout: float = 120.0
    retries: int = 3
    max_tokens: int = 1024
    json_mode: bool = True

    def __post_init__(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            ValueError: there is no address, or a number is out of range.
        """
        if not self.base_url:
            raise ValueError("an endpoint needs its base_url")
        if self.concurrency < 1 or self.retries < 0 or self.timeout <= 0 or self.max_tokens < 1:
            raise ValueError(f"{self.base_url}: concurrency, retries, timeout and max_tokens must be positive")

    def shared_by(self, places: int) -> "Asked":
        """The same for one of `places` that ask at once: its share of the requests."""
        return replace(self, concurrency=max(1, self.concurrency // places))


@dataclass(frozen=True, slots=True)
class Unusable:
    """No usable answer came; `why` says what did."""

    why: str
