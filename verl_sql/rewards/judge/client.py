"""Asks the judge: one event loop a process, bounded concurrency, retries with back-off, verdicts remembered on disk."""

import asyncio
import logging
import os
import threading
from concurrent.futures import Future
from functools import lru_cache
from typing import Any

from openai import APIError, AsyncOpenAI

from verl_sql.generation.file_cache import FileCache
from verl_sql.rewards.judge.config import JudgeConfig
from verl_sql.rewards.judge.prompts import JudgeQuestion
from verl_sql.rewards.judge.replies import UnusableReply, read_reply

log = logging.getLogger(__name__)


class JudgeError(RuntimeError):
    """The judge gave no usable verdict after all retries."""


class Judge:
    """A judge endpoint; safe from many threads and event loops, since all requests run on a loop of its own."""

    def __init__(self, config: JudgeConfig) -> None:
        """Start the loop; nothing is sent yet."""
        self.config = config
        self.cache = FileCache(config.cache, float)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="judge", daemon=True).start()
        self._client = AsyncOpenAI(
            base_url=config.base_url, api_key=config.api_key, timeout=config.timeout, max_retries=0
        )
        self._slots = asyncio.Semaphore(config.concurrency)
        self._asking: dict[str, asyncio.Task[float]] = {}
        self._model = config.model

    def ask(self, question: JudgeQuestion) -> float:
        """The verdict, waited for in this thread.

        Raises:
            JudgeError: no usable verdict came.
        """
        return self._submit(question).result()

    async def aask(self, question: JudgeQuestion) -> float:
        """The verdict, awaited.

        Raises:
            JudgeError: no usable verdict came.
        """
        return await asyncio.wrap_future(self._submit(question))

    def _submit(self, question: JudgeQuestion) -> "Future[float]":
        """Hand a question to the judge's loop."""
        return asyncio.run_coroutine_threadsafe(self._verdict(question), self._loop)

    async def _verdict(self, question: JudgeQuestion) -> float:
        """Remembered, already being asked, or asked now: equal questions of a group cost one request."""
        messages = question.messages()
        key = FileCache.key(await self._model_name(), str(question.kind), messages)
        remembered = self.cache.get(key)
        if remembered is not None:
            return remembered
        if key not in self._asking:
            task = asyncio.ensure_future(self._ask_until_usable(question, messages, key))
            self._asking[key] = task
            task.add_done_callback(lambda _: self._asking.pop(key, None))
        return await asyncio.shield(self._asking[key])

    async def _ask_until_usable(self, question: JudgeQuestion, messages: list[dict[str, str]], key: str) -> float:
        """Ask until a reply is usable or the tries are spent."""
        why = ""
        for attempt in range(self.config.retries + 1):
            if attempt:
                await asyncio.sleep(self.config.backoff * 2 ** (attempt - 1))
            try:
                value = read_reply(question.kind, await self._reply(messages))
            except (TimeoutError, UnusableReply, APIError) as error:
                why = f"{type(error).__name__}: {error}"
                log.info("judge, try %d of %d: %s", attempt + 1, self.config.retries + 1, why)
                continue
            self.cache.put(key, float(value))
            return value
        raise JudgeError(f"no usable verdict from {self.config.base_url} after {self.config.retries + 1} tries: {why}")

    async def _reply(self, messages: list[dict[str, str]]) -> str:
        """One request's text."""
        extra: dict[str, Any] = {"response_format": {"type": "json_object"}} if self.config.json_mode else {}
        async with self._slots:
            request = self._client.chat.completions.create(
                model=await self._model_name(),
                messages=messages,  # type: ignore[arg-type]
                temperature=0.0,
                max_tokens=self.config.max_tokens,
                **extra,
            )
            reply = await asyncio.wait_for(request, self.config.timeout)
        return (reply.choices[0].message.content or "") if reply.choices else ""

    async def _model_name(self) -> str:
        """The configured model, else the first one that the endpoint lists."""
        if not self._model:
            try:
                listed = await asyncio.wait_for(self._client.models.list(), self.config.timeout)
                self._model = listed.data[0].id
            except (TimeoutError, APIError, IndexError) as error:
                raise JudgeError(f"{self.config.base_url} lists no model; set judge.model or JUDGE_MODEL") from error
        return self._model


@lru_cache(maxsize=8)
def _judge_of(config: JudgeConfig, process: int) -> Judge:
    """One judge a configuration and process."""
    return Judge(config)


def shared_judge(config: JudgeConfig) -> Judge:
    """The process's judge of this configuration; a forked child gets its own."""
    return _judge_of(config, os.getpid())
