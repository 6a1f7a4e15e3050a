"""Many short questions to an OpenAI-compatible endpoint, each with a reply of a fixed form.

Usable replies are remembered on disk, so that a run which was killed asks nothing twice. What goes wrong with one
question (it is refused, it times out, its reply is not of the form) is that question's `Unusable` answer; what goes
wrong with the endpoint (away, no access, no such model, nothing usable at all) ends the run with one sentence.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from openai import APIConnectionError, APIError, APIStatusError, APITimeoutError, AsyncOpenAI

from verl_sql.generation.asked import Asked, AskingError, Unusable
from verl_sql.generation.file_cache import FileCache
from verl_sql.generation.replies import UnusableReply, default_folder
from verl_sql.generation.sampler import Message

T = TypeVar("T")
R = TypeVar("R", covariant=True)
HOPELESS = 20
"""So many questions without a usable reply, before the first usable one, mean that the endpoint cannot do the task."""
_QUESTION_FAULTS = frozenset({400, 413, 422})
RETRY_TEMPERATURE = 0.7


@dataclass(frozen=True, slots=True)
class Ask(Generic[R]):
    """One question: the chat, and what reads its reply (raising UnusableReply when it is not of the form)."""

    messages: tuple[Message, ...]
    read: Callable[[str], R]


class Asker:
    """Asks one endpoint; usable replies are remembered in `folder` (see `replies.default_folder`)."""

    def __init__(self, endpoint: Asked, folder: str | None = None) -> None:
        """Nothing is sent yet."""
        self.endpoint = endpoint
        self.cache = FileCache(folder or default_folder(), str)
        self._model = endpoint.model
        self._usable = self._useless = 0

    def ask(self, questions: Sequence[Ask[T]]) -> list[T | Unusable]:
        """The answers, in the questions' order; runs an event loop of its own.

        Raises:
            AskingError: the endpoint is at fault, not a question.
        """
        return asyncio.run(self._ask(questions)) if questions else []

    def model_name(self) -> str:
        """The model's name, asked of the endpoint when none is configured.

        Raises:
            AskingError: the endpoint lists none.
        """
        return asyncio.run(self._named())

    async def _ask(self, questions: Sequence[Ask[T]]) -> list[T | Unusable]:
        """All at once, as many on their way as the endpoint's concurrency says."""
        slots = asyncio.Semaphore(self.endpoint.concurrency)
        async with self._client() as client:
            model = await self._named()
            answers = [self._one(client, model, slots, question) for question in questions]
            tasks = [asyncio.create_task(answer) for answer in answers]
            try:
                return list(await asyncio.gather(*tasks))
            finally:
                for task in tasks:
                    task.cancel()

    async def _one(self, client: AsyncOpenAI, model: str, slots: asyncio.Semaphore, question: Ask[T]) -> T | Unusable:
        """Remembered, or asked until a reply is usable or the tries are spent."""
        key = self.cache.key(model, list(question.messages))
        why = ""
        if (remembered := self.cache.get(key)) is not None:
            with contextlib.suppress(UnusableReply):  # remembered by a version that read more
                answer = question.read(remembered)
                self._usable += 1
                return answer
        for attempt in range(self.endpoint.retries + 1):
            try:
                async with slots:
                    reply = await self._reply(client, model, question.messages, attempt)
                answer = question.read(reply)
            except UnusableReply as error:
                why = str(error)
                continue
            except (APIError, TimeoutError) as error:
                why = self._question_fault(error)
                break
            self.cache.put(key, reply)
            self._usable += 1
            return answer
        return self._without(why)

    async def _reply(self, client: AsyncOpenAI, model: str, messages: Sequence[Message], attempt: int) -> str:
        """One request's text."""
        extra: dict[str, object] = {"response_format": {"type": "json_object"}} if self.endpoint.json_mode else {}
        request = client.chat.completions.create(
            model=model,
            messages=list(messages),
            temperature=RETRY_TEMPERATURE if attempt else 0.0,
            max_tokens=self.endpoint.max_tokens,
            **extra,
        )  # type: ignore[call-overload]
        reply = await request
        return (reply.choices[0].message.content or "") if reply.choices else ""

    def _question_fault(self, error: Exception) -> str:
        """What is wrong with one question; raises when it is the endpoint."""
        if isinstance(error, APITimeoutError | TimeoutError):
            return f"no reply within {self.endpoint.timeout:g} s"
        if isinstance(error, APIStatusError) and error.status_code in _QUESTION_FAULTS:
            return f"refused with status {error.status_code}"
        raise AskingError(f"{self.endpoint.base_url}: {_said(error)}") from error

    def _without(self, why: str) -> Unusable:
        """The answer of a question that got no usable reply; raises when no question ever got one."""
        self._useless += 1
        if not self._usable and self._useless >= HOPELESS:
            raise AskingError(
                f"{self.endpoint.base_url}: none of the first {HOPELESS} questions got a usable reply; the last: {why}"
            )
        return Unusable(why)

    def _client(self) -> AsyncOpenAI:
        """A client of the loop that runs now."""
        e = self.endpoint
        key = os.environ.get(e.key_from) or "none"
        return AsyncOpenAI(base_url=e.base_url, api_key=key, timeout=e.timeout, max_retries=e.retries)

    async def _named(self) -> str:
        """The model's name."""
        if self._model is None:
            async with self._client() as client:
                try:
                    self._model = (await client.models.list()).data[0].id
                except (APIError, IndexError) as error:
                    raise AskingError(f"{self.endpoint.base_url} lists no model: {_said(error)}") from error
        return self._model


def _said(error: Exception) -> str:
    """An error on one line; a refused connection says nothing but its cause."""
    cause = error.__cause__ if isinstance(error, APIConnectionError) and error.__cause__ else error
    return " ".join(f"{cause}".split()) or type(cause).__name__
