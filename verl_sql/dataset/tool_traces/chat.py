"""Chats of a model with the tools, many side by side: any `Sampler` writes, the toolbox answers, turn by turn.

For endpoints that know nothing of tools: calls are read off the text in Hermes' form, and answers go back as user
messages between `<tool_response>` tags, which is what chat templates make of a tool message.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from verl_sql.generation.sampler import Completion, Message, Prompt, Sampler, Sampling
from verl_sql.sqltext.turns import Call, calls_of, split_turns
from verl_sql.tools import CallStatus, Toolbox, ToolResult


@dataclass(slots=True)
class Chat:
    """One trajectory under way or done.

    Attributes:
        prompt: the messages it began with.
        database: what the tools look at.
        said: the messages since: the assistant's with its calls as text, and the tools'.
        finished: it answered, and was not cut by a limit of tokens or turns.
        over: nothing more is asked.
    """

    prompt: tuple[Message, ...]
    database: Path
    said: list[Message] = field(default_factory=list)
    finished: bool = False
    over: bool = False

    @property
    def shown(self) -> Prompt:
        """What the model sees next."""
        return Prompt((*self.prompt, *map(_as_user, self.said)))


def run_chats(
    starts: Sequence[tuple[Sequence[Message], Path]],
    sampler: Sampler,
    toolbox: Toolbox,
    sampling: Sampling,
    max_turns: int = 6,
) -> list[Chat]:
    """A chat for each (prompt, database), in their order; all take their turns together.

    Args:
        starts: prompts and databases; repeat one to sample it several times.
        sampler: writes the assistant's turns.
        toolbox: answers the calls.
        sampling: temperature, tokens a turn; its `n` is not looked at.
        max_turns: turns of the assistant at most.

    Raises:
        SamplingError: the sampler gave nothing.
    """
    chats = [Chat(tuple(prompt), database) for prompt, database in starts]
    one = Sampling(1, sampling.temperature, sampling.top_p, sampling.max_tokens, sampling.seed, sampling.stop)
    for turn in range(max_turns):
        open_ones = [chat for chat in chats if not chat.over]
        if not open_ones:
            break
        replies = sampler.sample([chat.shown for chat in open_ones], one)
        asyncio.run(_answer_all(toolbox, open_ones, [group[0] for group in replies], turn == max_turns - 1))
    return chats


async def _answer_all(toolbox: Toolbox, chats: Sequence[Chat], replies: Sequence[Completion], last: bool) -> None:
    """Take what was written, answer its calls at once."""
    await asyncio.gather(*(_take(toolbox, chat, reply, last) for chat, reply in zip(chats, replies, strict=True)))


async def _take(toolbox: Toolbox, chat: Chat, reply: Completion, last: bool) -> None:
    """One turn of one chat."""
    calls = calls_of([turn for turn in split_turns(reply.text) if turn.role == "assistant"])
    chat.said.append({"role": "assistant", "content": reply.text.strip()})
    chat.finished = reply.finished and not calls
    chat.over = last or not reply.finished or not calls
    if not chat.over:
        results = await asyncio.gather(*(_answer(toolbox, chat.database, call) for call in calls))
        chat.said += [{"role": "tool", "content": result.text} for result in results]


async def _answer(toolbox: Toolbox, database: Path, call: Call) -> ToolResult:
    """The answer to one call, one that cannot be read included."""
    if not call.name:
        text = 'error: the call is no JSON object. Write it so: {"name": "…", "arguments": {…}}'
        return ToolResult(text, CallStatus.BAD_CALL)
    return await toolbox.call(call.name, call.arguments, database)


def _as_user(message: Message) -> Message:
    """A tool's message as an endpoint without tools takes it."""
    if message["role"] != "tool":
        return message
    return {"role": "user", "content": f"<tool_response>\n{message['content']}\n</tool_response>"}
