"""Asks a served process reward model for a reward: bounded concurrency, retries with back-off, equal texts once.

The server is vLLM's, behind verl's reward-model router or not: `POST /pooling` with token ids and the task
`token_classify` gives each token's probabilities; those at the step tags are read. Its name for the model and the
longest input it takes are asked of `GET /v1/models`.
"""

import asyncio
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from functools import lru_cache
from typing import Any, TypeVar

import httpx

from verl_sql.prm.encoding import encode

log = logging.getLogger(__name__)

CORRECT = 1
"""The class "this step is correct"."""

REMEMBERED = 20_000
"""Texts whose scores a process remembers: the rollouts of a group are often equal."""

T = TypeVar("T")


class PRMUnavailable(RuntimeError):
    """The process reward model gave no answer after all tries: our fault, never the policy's."""


class ServedPRM:
    """One server; safe from many threads and event loops, since all requests run on a loop of its own."""

    def __init__(
        self,
        base_url: str,
        tokenizer: Any,
        timeout: float = 60.0,
        tries: int = 6,
        concurrency: int = 64,
        model: str | None = None,
    ) -> None:
        """Start the loop; nothing is sent yet.

        Args:
            base_url: `http://host:port`.
            tokenizer: the model's own, with the step tag.
            timeout: seconds a request may take.
            tries: requests that are made for a text before it fails; the pauses between them double from 1 s on.
            concurrency: requests under way at once.
            model: its name there; None takes the first that the server lists.
        """
        self._name = model
        self.base_url = base_url.rstrip("/").removesuffix("/v1")
        self._tokenizer = tokenizer
        self._tries = tries
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="prm", daemon=True).start()
        limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
        self._client = httpx.AsyncClient(timeout=httpx.Timeout(timeout, pool=None), limits=limits)
        self._card: asyncio.Task[dict[str, Any]] | None = None
        self._asking: dict[str, asyncio.Task[tuple[float, ...]]] = {}
        self._known: OrderedDict[str, tuple[float, ...]] = OrderedDict()

    def ask(self, text: str) -> tuple[float, ...]:
        """P(correct) at each tag of a rendered chain, waited for in this thread.

        Raises:
            PRMUnavailable: no answer came.
        """
        return self._submit(self._scores(text)).result()

    def ask_many(self, texts: Sequence[str]) -> list[tuple[float, ...]]:
        """`ask` for many texts, under way together.

        Raises:
            PRMUnavailable: one of them got no answer.
        """
        return [future.result() for future in [self._submit(self._scores(text)) for text in texts]]

    async def aask(self, text: str) -> tuple[float, ...]:
        """`ask`, awaited."""
        return await asyncio.wrap_future(self._submit(self._scores(text)))

    def _submit(self, work: Coroutine[Any, Any, T]) -> "Future[T]":
        """Hand work to the loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _scores(self, text: str) -> tuple[float, ...]:
        """Remembered, being asked for already, or asked for now."""
        if text in self._known:
            self._known.move_to_end(text)
            return self._known[text]
        if text not in self._asking:
            self._asking[text] = asyncio.ensure_future(self._ask(text))
            self._asking[text].add_done_callback(lambda _: self._asking.pop(text, None))
        return await asyncio.shield(self._asking[text])

    async def _ask(self, text: str) -> tuple[float, ...]:
        """Ask until an answer comes or the tries are spent."""
        card = await self._model()
        ids, positions = encode(self._tokenizer, text, card.get("max_model_len"))
        request = {
            "model": self._name or card["id"],
            "input": [ids],
            "task": "token_classify",
            "encoding_format": "float",
        }
        reply = await self._reply("POST", "/pooling", request)
        rows = reply["data"][0]["data"]
        scores = tuple(float(rows[at][CORRECT]) if at >= 0 else 0.0 for at in positions)
        self._known[text] = scores
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        return scores

    async def _model(self) -> dict[str, Any]:
        """The server's card of its model; asked for once, and again after a failure."""
        if self._card is None or (self._card.done() and self._card.exception() is not None):
            self._card = asyncio.ensure_future(self._reply("GET", "/v1/models", None))
        card: dict[str, Any] = (await asyncio.shield(self._card))["data"][0]
        return card

    async def _reply(self, method: str, path: str, request: dict[str, Any] | None) -> dict[str, Any]:
        """One answer of the server; what is wrong with the request itself is not tried again."""
        why = ""
        for attempt in range(self._tries):
            if attempt:
                await asyncio.sleep(min(2.0 ** (attempt - 1), 30.0))
            try:
                response = await self._client.request(method, self.base_url + path, json=request)
                response.raise_for_status()
                reply: dict[str, Any] = response.json()
                return reply
            except (httpx.HTTPError, ValueError) as error:
                why = f"{type(error).__name__}: {error}"
                if isinstance(error, httpx.HTTPStatusError) and error.response.status_code < 500:
                    why = f"{error.response.status_code} {error.response.text[:300]}"
                    break
                log.warning("process reward model, try %d of %d: %s", attempt + 1, self._tries, why)
        raise PRMUnavailable(f"no answer from the process reward model at {self.base_url}{path}: {why}")


def served_prm(base_url: str, folder: str, timeout: float, tries: int, concurrency: int) -> ServedPRM:
    """The server at `base_url`, one a process; `folder` holds the model's tokenizer."""
    return _served(base_url, folder, timeout, tries, concurrency, os.getpid())


@lru_cache(maxsize=8)
def _served(base_url: str, folder: str, timeout: float, tries: int, concurrency: int, process: int) -> ServedPRM:
    """`process` is part of the key: a loop does not survive a fork."""
    from transformers import AutoTokenizer

    return ServedPRM(base_url, AutoTokenizer.from_pretrained(folder), timeout, tries, concurrency)
