"""A multi-turn response in its turns: what the policy wrote, what its calls asked for, what the tools answered.

verl hands a whole trajectory over as one text, the tools' answers among it. Tool text is never the policy's answer, so
it has to be told apart. The wire format is Hermes', which Qwen's chat templates and verl's default tool parser share:
`<tool_call>{"name": …, "arguments": {…}}</tool_call>` in what the policy writes, and tool answers as
`<tool_response>…</tool_response>` in a user turn of their own. A policy that writes such tags itself only loses its own
text: tools cannot write them (`quoting.neutral`), so that everything between the tags of a real tool answer is
always left out. An agent loop that knows the policy's tokens says it exactly: `extra_info["own_turns"]`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_OPEN, _CLOSE = "<tool_call>", "</tool_call>"
_HEAD = r"(?:(?:<\|im_end\|>)?\s{0,4}(?:<\|im_start\|>)?user\n)?"
_TAIL = r"(?:(?:<\|im_end\|>)?\s{0,4}(?:<\|im_start\|>)?assistant\n)?"
_TOOL_TURN = re.compile(rf"{_HEAD}<tool_response>\n?(.*?)(?:\n?</tool_response>{_TAIL}|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call that the policy wrote.

    Attributes:
        name: the tool's name, empty when the call could not be read.
        arguments: what it was given; empty when the call could not be read.
        text: the call as written, between its tags.
    """

    name: str
    arguments: Mapping[str, Any]
    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a trajectory.

    Attributes:
        role: `assistant` or `tool`.
        text: what was said; an assistant's without its calls.
        calls: an assistant's tool calls.
    """

    role: str
    text: str
    calls: tuple[Call, ...] = ()


def split_turns(response: str) -> tuple[Turn, ...]:
    """The turns of a response, special tokens dropped or not. Never raises; a response without tools is one turn."""
    turns: list[Turn] = []
    at = 0
    for match in _TOOL_TURN.finditer(response):
        turns += _assistant(response[at : match.start()])
        turns.append(Turn("tool", match.group(1)))
        at = match.end()
    turns += _assistant(response[at:])
    return tuple(turns)


def turns_of(response: str, extra_info: Mapping[str, Any] | None = None) -> tuple[Turn, ...]:
    """The policy's own turns: those that the agent loop recorded, else the assistant's of `split_turns`."""
    recorded = (extra_info or {}).get("own_turns")
    if isinstance(recorded, str) and recorded:
        return tuple(turn for text in json.loads(recorded) for turn in _assistant(str(text)))
    return tuple(turn for turn in split_turns(response) if turn.role == "assistant")


def messages_of(response: str) -> list[dict[str, str]]:
    """A response as chat messages: the assistant's with their calls as text, and apart from them the tools'."""
    messages: list[dict[str, str]] = []
    at = 0
    for match in _TOOL_TURN.finditer(response):
        messages.append({"role": "assistant", "content": response[at : match.start()].strip()})
        messages.append({"role": "tool", "content": match.group(1)})
        at = match.end()
    messages.append({"role": "assistant", "content": response[at:].strip()})
    return [message for message in messages if message["content"] or message["role"] == "tool"]


def own_text(response: str, extra_info: Mapping[str, Any] | None = None) -> str:
    """What the policy itself wrote, in all its turns, without calls and without any tool text."""
    if _OPEN not in response and "<tool_response>" not in response and not (extra_info or {}).get("own_turns"):
        return response
    return "\n".join(turn.text for turn in turns_of(response, extra_info) if turn.text)


def calls_of(turns: Sequence[Turn]) -> list[Call]:
    """Every call, in order."""
    return [call for turn in turns for call in turn.calls]


def feedback_text(text: str) -> str:
    """What a policy is told between its turns, as the content of a user message that `split_turns` finds again."""
    return f"<tool_response>\n{text}\n</tool_response>"


def call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """A call as a policy writes it."""
    body = json.dumps({"name": name, "arguments": dict(arguments)}, ensure_ascii=False)
    return f"{_OPEN}\n{body}\n{_CLOSE}"


def _assistant(text: str) -> list[Turn]:
    """The assistant's turn in a piece of text; none when it is blank."""
    said, calls = _without_calls(text)
    return [Turn("assistant", said, tuple(calls))] if said or calls else []


def _without_calls(text: str) -> tuple[str, list[Call]]:
    """The text without its calls, and the calls. One that is never closed reaches to an `<answer>` or the end."""
    said: list[str] = []
    calls: list[Call] = []
    at, last_close = 0, text.rfind(_CLOSE)
    while (start := text.find(_OPEN, at)) >= 0:
        said.append(text[at:start])
        begin = start + len(_OPEN)
        if last_close >= begin:
            end = text.find(_CLOSE, begin)
            at = end + len(_CLOSE)
        else:
            found = text.find("<answer>", begin)
            end = at = found if found >= 0 else len(text)
        calls.append(_call(text[begin:end]))
    said.append(text[at:])
    return "".join(said).strip(), calls


def _call(text: str) -> Call:
    """A call read as verl's parser reads it; without a name when it cannot be."""
    try:
        body = json.loads(text)
        name, arguments = body["name"], body["arguments"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return Call("", {}, text.strip())
    known = isinstance(name, str) and isinstance(arguments, Mapping)
    return Call(name, arguments, text.strip()) if known else Call("", {}, text.strip())
