"""Step scores: P(correct) at each step tag of a rendered chain, from transformers, from vLLM, or from a server.

    TransformersScorer("outputs/prm").score([render_chain(prompt, chain, results).text])    # [[0.93, 0.12]]

A tag that the model's longest input leaves out scores 0: nobody has seen that step to be correct.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import httpx

from verl_sql.prm.encoding import encode_many, tag_id
from verl_sql.prm.model import CORRECT, is_outcome_model

log = logging.getLogger(__name__)

Encoded = tuple[list[int], list[int]]


class ScoringError(RuntimeError):
    """The server of the process reward model gives no scores."""


class StepScorer(Protocol):
    """A process (or outcome) reward model, however it is served."""

    def score(self, texts: Sequence[str]) -> list[list[float]]:
        """For each rendered chain, P(correct) in [0, 1] at each of its tags, in order."""
        ...


class TransformersScorer:
    """A checkpoint loaded with transformers.

    Args:
        folder: the checkpoint.
        batch_tokens: tokens of a batch, padding included.
        device: None takes a GPU if there is one.
        dtype: of the weights, "float32", "bfloat16", ….

    Attributes:
        score_final: whether it wants chains rendered with their final query, as an outcome model does.

    Raises:
        ValueError: it is no process reward model.
    """

    def __init__(
        self, folder: str | Path, *, batch_tokens: int = 16_384, device: str | None = None, dtype: str = "float32"
    ) -> None:
        """Load it."""
        import torch
        from transformers import AutoModelForTokenClassification, AutoTokenizer

        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        tag_id(self._tokenizer)
        self._device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        model = AutoModelForTokenClassification.from_pretrained(folder, dtype=getattr(torch, dtype))
        self._model = model.to(self._device).eval()
        self._batch_tokens = batch_tokens
        self.score_final = is_outcome_model(folder)

    def score(self, texts: Sequence[str]) -> list[list[float]]:
        """See `StepScorer`; chains of like length go through the model together."""
        longest = self._model.config.max_position_embeddings
        encoded = encode_many(self._tokenizer, texts, longest)
        scores: list[list[float]] = [[] for _ in encoded]
        for batch in batches([len(ids) for ids, _ in encoded], self._batch_tokens):
            for number, found in zip(batch, self._batch([encoded[number] for number in batch]), strict=True):
                scores[number] = found
        return scores

    def _batch(self, encoded: Sequence[Encoded]) -> list[list[float]]:
        """Scores of chains that are padded to one length (on the right, so padding is never attended to)."""
        import torch

        width = max(1, *(len(ids) for ids, _ in encoded))
        inputs = torch.zeros(len(encoded), width, dtype=torch.long)
        mask = torch.zeros_like(inputs)
        for row, (ids, _) in enumerate(encoded):
            inputs[row, : len(ids)] = torch.tensor(ids)
            mask[row, : len(ids)] = 1
        with torch.inference_mode():
            logits = self._model(input_ids=inputs.to(self._device), attention_mask=mask.to(self._device)).logits
        correct = torch.softmax(logits.float(), dim=-1)[..., CORRECT].cpu()
        return [at_tags(correct[row].tolist(), tags) for row, (_, tags) in enumerate(encoded)]


class VllmScorer:
    """A checkpoint loaded with vLLM in this process.

    Args:
        folder: the checkpoint.
        engine: further arguments of `vllm.LLM`; without any, its type is that of the checkpoint.

    Raises:
        ValueError: it is no process reward model.
        SamplingError: vLLM is not installed.
    """

    def __init__(self, folder: str | Path, **engine: Any) -> None:
        """Load it; takes seconds to minutes."""
        from transformers import AutoTokenizer

        from verl_sql.generation.token_labels import VllmTokenClassifier

        self._tokenizer = AutoTokenizer.from_pretrained(folder)
        tag_id(self._tokenizer)
        self._classifier = VllmTokenClassifier(str(folder), **engine)
        self.score_final = is_outcome_model(folder)

    def score(self, texts: Sequence[str]) -> list[list[float]]:
        """See `StepScorer`."""
        encoded = encode_many(self._tokenizer, texts, self._classifier.max_length)
        found = self._classifier.probabilities([ids for ids, _ in encoded]) if encoded else []
        return [
            at_tags([classes[CORRECT] for classes in rows], tags)
            for rows, (_, tags) in zip(found, encoded, strict=True)
        ]


class EndpointScorer:
    """A checkpoint behind a vLLM server, verl's reward-model router included: POST /pooling with token ids.

    Safe from many threads and event loops: all requests run on a loop of its own. A server that is down, or answers
    something else, is asked again and then raises; no chain is scored 0 for a fault of ours.

    Args:
        base_url: `http://host:port`; verl's router address `host:port` will do, and a trailing `/v1` is ignored.
        model: its name there; None lets the server take its only one.
        tokenizer: folder of the checkpoint, of which the tokenizer and the config are read.
        api_key: None takes PRM_API_KEY.
        concurrency: requests on their way at once.
        timeout: seconds one request may take.
        retries: further tries of a failed request.
        backoff: seconds before the first of them; doubles each time.
        max_length: tokens of the longest input; None takes the model's positions.

    Raises:
        ValueError: it is no process reward model.
    """

    def __init__(
        self,
        base_url: str,
        model: str | None = None,
        *,
        tokenizer: str | Path,
        api_key: str | None = None,
        concurrency: int = 64,
        timeout: float = 120.0,
        retries: int = 4,
        backoff: float = 0.5,
        max_length: int | None = None,
    ) -> None:
        """Nothing is sent yet."""
        from transformers import AutoConfig, AutoTokenizer

        self.base_url = _address(base_url)
        self.model, self.retries, self.backoff = model, retries, backoff
        self._tokenizer = AutoTokenizer.from_pretrained(tokenizer)
        tag_id(self._tokenizer)
        self._longest = max_length or int(AutoConfig.from_pretrained(tokenizer).max_position_embeddings)
        self.score_final = is_outcome_model(tokenizer)
        self._encoding = threading.Lock()  # a fast tokenizer is not for two threads at once
        key = api_key or os.environ.get("PRM_API_KEY")
        self._client = httpx.AsyncClient(
            base_url=self.base_url,
            timeout=timeout,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            limits=httpx.Limits(max_connections=concurrency),
        )
        self._slots = asyncio.Semaphore(concurrency)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="prm", daemon=True).start()

    def score(self, texts: Sequence[str]) -> list[list[float]]:
        """See `StepScorer`; all requests at once, as many on their way as `concurrency` says.

        Raises:
            ScoringError: the server gives no scores.
        """
        return asyncio.run_coroutine_threadsafe(self._all(texts), self._loop).result()

    async def ascore(self, text: str) -> list[float]:
        """The scores of one rendered chain, awaited in any event loop.

        Raises:
            ScoringError: the server gives no scores.
        """
        found = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._all([text]), self._loop))
        return found[0]

    async def _all(self, texts: Sequence[str]) -> list[list[float]]:
        """The scores of all texts, in order."""
        with self._encoding:
            encoded = encode_many(self._tokenizer, texts, self._longest)
        tasks = [asyncio.create_task(self._one(ids, tags)) for ids, tags in encoded]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()

    async def _one(self, ids: list[int], tags: list[int]) -> list[float]:
        """Ask until an answer is usable or the tries are spent."""
        body: dict[str, Any] = {"input": ids, "task": "token_classify", "encoding_format": "float"}
        if self.model:
            body["model"] = self.model
        why = ""
        for attempt in range(self.retries + 1):
            if attempt:
                await asyncio.sleep(self.backoff * 2 ** (attempt - 1))
            try:
                async with self._slots:
                    reply = await self._client.post("/pooling", json=body)
                return at_tags(read_reply(reply, len(ids)), tags)
            except (httpx.HTTPError, ScoringError) as error:
                why = str(error) or type(error).__name__
                log.info("process reward model, try %d of %d: %s", attempt + 1, self.retries + 1, why)
        raise ScoringError(
            f"the process reward model at {self.base_url} gave no scores in {self.retries + 1} tries: {why}"
        )


def read_reply(reply: httpx.Response, n_tokens: int) -> list[float]:
    """P(correct) at each of the tokens of a request, from a server's answer.

    Raises:
        ScoringError: the answer is an error, or not one row of two probabilities a token.
    """
    if reply.status_code != httpx.codes.OK:
        raise ScoringError(f"status {reply.status_code}: {reply.text[:200]}")
    try:
        rows = reply.json()["data"][0]["data"]
        correct = [float(row[CORRECT]) for row in rows]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise ScoringError(f"no answer of a token classifier: {reply.text[:200]}") from error
    if len(correct) != n_tokens:
        raise ScoringError(f"{len(correct)} rows for {n_tokens} tokens; is the model served as a token classifier?")
    return correct


def at_tags(correct: Sequence[float], tags: Sequence[int]) -> list[float]:
    """The values at the tags' positions; 0 for a tag that was cut off."""
    return [correct[tag] if tag >= 0 else 0.0 for tag in tags]


def batches(lengths: Sequence[int], batch_tokens: int) -> list[list[int]]:
    """Positions of inputs in batches of like length, none of more than `batch_tokens` padded tokens (one input may be).

    >>> batches([5, 1, 5, 2], 10)
    [[1, 3], [0, 2]]
    """
    found: list[list[int]] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if found and lengths[number] * (len(found[-1]) + 1) <= batch_tokens:
            found[-1].append(number)
        else:
            found.append([number])
    return found


def _address(base_url: str) -> str:
    """`http://host:port` from what people write."""
    address = base_url if "://" in base_url else f"http://{base_url}"
    return address.rstrip("/").removesuffix("/v1")
