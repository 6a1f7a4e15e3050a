"""Completions from any OpenAI-compatible endpoint (vLLM, SGLang, a hosted model), many requests at once."""

import asyncio
import os
from collections.abc import Sequence
from typing import Any

from openai import APIError, AsyncOpenAI

from verl_sql.generation.sampler import Completion, Prompt, Sampling, SamplingError


class EndpointSampler:
    """A `Sampler` behind HTTP.

    Args:
        base_url: of the endpoint, ending in `/v1`.
        model: its name there; None takes the first that the endpoint lists.
        api_key: None takes OPENAI_API_KEY.
        concurrency: requests on their way at once.
        timeout: seconds one request may take.
        retries: further tries of a failed request, with the client's own back-off.

    A prompt with a prefix needs an endpoint that continues the last message (`continue_final_message`, vLLM's and
    SGLang's extension).
    """

    def __init__(
        self,
        base_url: str,
        model: str | None = None,
        api_key: str | None = None,
        concurrency: int = 16,
        timeout: float = 120.0,
        retries: int = 3,
    ) -> None:
        """Nothing is sent yet."""
        self.base_url, self.concurrency = base_url, concurrency
        self._model = model
        self._client_options: dict[str, Any] = {
            "base_url": base_url,
            "api_key": api_key or os.environ.get("OPENAI_API_KEY", "none"),
            "timeout": timeout,
            "max_retries": retries,
        }

    def sample(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        """See `Sampler`; runs an event loop of its own, so call `asample` from inside one."""
        return asyncio.run(self.asample(prompts, sampling))

    async def asample(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        """`sample` for an event loop."""
        slots = asyncio.Semaphore(self.concurrency)
        async with AsyncOpenAI(**self._client_options) as client:
            model = await self._named(client)
            tasks = [asyncio.ensure_future(self._one(client, model, slots, p, sampling)) for p in prompts]
            try:
                return list(await asyncio.gather(*tasks))
            except APIError as error:
                raise SamplingError(f"{self.base_url}: {error}") from error
            finally:
                for task in tasks:
                    task.cancel()

    async def _one(
        self, client: AsyncOpenAI, model: str, slots: asyncio.Semaphore, prompt: Prompt, sampling: Sampling
    ) -> list[Completion]:
        """The completions of one prompt; an endpoint that gives fewer than asked for is asked again."""
        found: list[Completion] = []
        while len(found) < sampling.n:
            async with slots:
                reply = await client.chat.completions.create(
                    model=model, **_request(prompt, sampling, sampling.n - len(found), len(found))
                )
            if not reply.choices:
                raise SamplingError(f"{self.base_url}: a reply without choices")
            found += [Completion(c.message.content or "", c.finish_reason != "length") for c in reply.choices]
        return found[: sampling.n]

    async def _named(self, client: AsyncOpenAI) -> str:
        """The model's name."""
        if self._model is None:
            try:
                listed = await client.models.list()
                self._model = listed.data[0].id
            except (APIError, IndexError) as error:
                raise SamplingError(f"{self.base_url} lists no model: {error}") from error
        return self._model


def _request(prompt: Prompt, sampling: Sampling, n: int, had: int) -> dict[str, Any]:
    """The body of one request; a repeated one gets another seed."""
    messages = list(prompt.messages)
    body: dict[str, Any] = {
        "n": n,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "max_tokens": sampling.max_tokens,
    }
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    if sampling.seed is not None:
        body["seed"] = sampling.seed + had
    if prompt.prefix:
        messages.append({"role": "assistant", "content": prompt.prefix})
        body["extra_body"] = {"continue_final_message": True, "add_generation_prompt": False}
    return body | {"messages": messages}
