"""Where a run's models are: loaded here from a folder, or behind an endpoint."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from verl_sql.generation.sampler import Sampler
    from verl_sql.prm.scoring import StepScorer


class ServedModelError(ValueError):
    """Models are named wrongly; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Served:
    """Where a model is: a folder or hub name to load here, or an endpoint.

    Attributes:
        model: folder or hub name; with an endpoint of a reward model the folder of its tokenizer.
        url: address of the endpoint, empty without one.
        name: the model's name there, empty for the first it lists.
        engine: arguments of vLLM for a model that is loaded here.
        kind: what loads a reward model, `transformers` or `vllm`.
    """

    model: str = ""
    url: str = ""
    name: str = ""
    engine: Mapping[str, Any] | None = None
    kind: str = "transformers"

    def __str__(self) -> str:
        """What the run notes: the model, or its address and name."""
        return f"{self.url} {self.name}".strip() if self.url else self.model


def make_sampler(policy: Served, seed: int) -> "Sampler":
    """The policy, loaded or behind its endpoint."""
    if policy.url:
        from verl_sql.generation.endpoint import EndpointSampler

        return EndpointSampler(policy.url, policy.name or None)
    from verl_sql.generation.offline import VllmSampler

    return VllmSampler(policy.model, **{"seed": seed, **(policy.engine or {})})


def make_scorer(served: Served) -> "StepScorer":
    """A reward model, loaded or behind its server."""
    from verl_sql.prm.scoring import EndpointScorer, TransformersScorer, VllmScorer

    if served.url:
        return EndpointScorer(served.url, served.name or None, tokenizer=served.model)
    if served.kind == "vllm":
        return VllmScorer(served.model, **(served.engine or {}))
    return TransformersScorer(served.model)


def engine_arguments(texts: Sequence[str]) -> dict[str, Any]:
    """`KEY=VALUE` as arguments; values are read as JSON where they are JSON (true, 4096, 0.9), else as text.

    Raises:
        ServedModelError: a text without `=`.
    """
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise ServedModelError(f"--engine takes KEY=VALUE, not {text!r}")
        try:
            found[key] = json.loads(value)
        except ValueError:
            found[key] = value
    return found


def check_served(policy: Served, models: Sequence[Served]) -> None:
    """See before anything is loaded that the models are named, and that folders are folders.

    Raises:
        ServedModelError: one is not.
    """
    if bool(policy.model) == bool(policy.url):
        raise ServedModelError("name the policy, either by --model or by --base-url")
    for option, served in zip(("--model", "--prm", "--orm"), (policy, *models), strict=True):
        if served.url and served is not policy and not served.model:
            raise ServedModelError(f"{option}-url needs the folder of the model's tokenizer as well: {option}")
        folder = Path(served.model)
        if served.model.startswith(("/", ".")) and not folder.is_dir():
            raise ServedModelError(f"{option} {served.model} is not a folder")
        if served.model and not served.url and folder.is_dir() and not (folder / "config.json").is_file():
            raise ServedModelError(f"{option} {served.model} holds no model: there is no config.json in it")
        if served.kind not in ("transformers", "vllm"):
            raise ServedModelError(f"--scorer {served.kind} is neither transformers nor vllm")
