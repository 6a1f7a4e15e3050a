"""verl's tool agent loop for database tools, as agent `verl_sql_tools`: what comes back from a tool is data.

verl's own `tool_agent` works with the tools too. This subclass adds what that loop cannot know: the tokenizer's special
tokens are kept out of tool texts, a call that cannot be read is answered instead of ending the trajectory, and what the
policy itself wrote is recorded from its tokens (`extra_fields["own_turns"]`), so that the reward never reads tool text.
Written against verl 0.9.1 (verl/experimental/agent_loop/tool_agent_loop.py), whose private `_call_tool` it extends:
there is no public place between a tool's answer and its tokens.
"""

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, register
from verl.experimental.agent_loop.tool_agent_loop import AgentData, ToolAgentLoop
from verl.experimental.agent_loop.tool_parser import FunctionCall, HermesToolParser, ToolParser
from verl.tools.schemas import OpenAIFunctionToolSchema, ToolResponse
from verl.utils.ray_utils import get_event_loop

from verl_sql.integration.special_tokens import special_texts
from verl_sql.sqltext.quoting import neutral
from verl_sql.sqltext.turns import split_turns
from verl_sql.tools import TOOL_NAMES, CallStatus, ToolResult

BAD_CALL = "?"
"""Name of a call that could not be read."""


def tools_kwargs(db_id: str, names: Sequence[str] = TOOL_NAMES) -> dict[str, dict[str, dict[str, str]]]:
    """`extra_info.tools_kwargs` of a sample: each tool is created on its database."""
    return {name: {"create_kwargs": {"db_id": db_id}} for name in names}


def log_call(agent_data: AgentData | None, name: str, result: ToolResult) -> None:
    """Note in the trajectory how a call ended."""
    if agent_data is not None:
        entry = {"name": name, "status": str(result.status), "seconds": round(result.seconds, 4)}
        agent_data.extra_fields.setdefault("tool_log", []).append(entry)


@ToolParser.register("verl_sql_hermes")
class ForgivingHermesParser(HermesToolParser):
    """Hermes' format, with calls that are no JSON kept as calls (of BAD_CALL), so that the policy is told.

    A text that answers beside a call that cannot be read has answered.
    """

    async def extract_tool_calls(
        self, responses_ids: list[int], tools: list[OpenAIFunctionToolSchema] | None = None
    ) -> tuple[str, list[FunctionCall]]:
        """The text without its calls, and the calls."""
        text = await get_event_loop().run_in_executor(None, self.tokenizer.decode, responses_ids)
        turns = [turn for turn in split_turns(text) if turn.role == "assistant"]
        said = "\n".join(turn.text for turn in turns)
        calls = [call for turn in turns for call in turn.calls]
        if "</answer>" in said and not any(call.name for call in calls):
            calls = []
        return said, [
            FunctionCall(name=call.name or BAD_CALL, arguments=json.dumps(dict(call.arguments), ensure_ascii=False))
            for call in calls
        ]


@register("verl_sql_tools")
class SQLToolAgentLoop(ToolAgentLoop):
    """The policy calls tools until it answers, or its turns or tokens run out; then the trajectory counts as it is."""

    async def run(self, sampling_params: dict[str, Any], priority: int = 0, **kwargs: Any) -> AgentLoopOutput:
        """One trajectory; its extra fields tell the reward what the policy wrote and how it ended."""
        info: Mapping[str, Any] = kwargs.get("extra_info") or {}
        if not kwargs.get("tools_kwargs") and info.get("db_id"):
            kwargs["tools_kwargs"] = tools_kwargs(str(info["db_id"]), tuple(self.tools))
        output: AgentLoopOutput = await super().run(sampling_params, priority=priority, **kwargs)
        own = own_turns(self.tokenizer, output.response_ids, output.response_mask)
        output.extra_fields.setdefault("tool_log", [])
        output.extra_fields["own_turns"] = json.dumps(own, ensure_ascii=False)
        output.extra_fields["ran_out"] = await self._ran_out(output)
        return output

    async def _ran_out(self, output: AgentLoopOutput) -> str:
        """What ran out before the policy had answered: `tokens`, `turns`, or nothing."""
        if len(output.response_ids) >= self.response_length:
            return "tokens"
        last = last_segment(output.response_ids, output.response_mask)
        _, calls = await self.tool_parser.extract_tool_calls(last)
        if not calls:
            return ""
        turns = sum(1 for own, _ in groupby(output.response_mask) if own)
        return "turns" if self.max_assistant_turns and turns >= self.max_assistant_turns else "tokens"

    async def _call_tool(
        self, tool_call: FunctionCall, tools_kwargs: dict[str, Any], agent_data: AgentData
    ) -> tuple[ToolResponse, float | None, dict[str, Any]]:
        """Answer one call in text without special tokens, whatever went wrong with it."""
        problem = self._problem(tool_call)
        if problem is not None:
            log_call(agent_data, tool_call.name, problem)
            return ToolResponse(text=self._neutral(problem.text)), None, {}
        response, reward, metrics = await super()._call_tool(tool_call, tools_kwargs or {}, agent_data)
        return response.model_copy(update={"text": self._neutral(response.text or "")}), reward, metrics

    def _problem(self, call: FunctionCall) -> ToolResult | None:
        """What is wrong with a call before any tool sees it."""
        names = ", ".join(self.tools)
        if call.name == BAD_CALL:
            form = '{"name": "…", "arguments": {…}}'
            text = f"error: the call is no JSON object. Write it so: {form}. There are: {names}"
            return ToolResult(text, CallStatus.BAD_CALL)
        if call.name not in self.tools:
            return ToolResult(f"error: there is no tool {call.name[:80]}. There are: {names}", CallStatus.UNKNOWN_TOOL)
        return None

    def _neutral(self, text: str) -> str:
        """The text without any special token of the tokenizer; lines stay lines."""
        tokens = special_texts(self.tokenizer)
        return "\n".join(neutral(line, tokens) for line in text.split("\n"))


def own_turns(tokenizer: Any, ids: Sequence[int], mask: Sequence[int]) -> list[str]:
    """The texts of the policy's own turns: its tokens have mask 1, those of prompts and tools 0."""
    return [tokenizer.decode(segment, skip_special_tokens=True) for segment in _segments(ids, mask)]


def last_segment(ids: Sequence[int], mask: Sequence[int]) -> list[int]:
    """The tokens of the policy's last turn."""
    segments = _segments(ids, mask)
    return segments[-1] if segments else []


def _segments(ids: Sequence[int], mask: Sequence[int]) -> list[list[int]]:
    """Runs of tokens with mask 1."""
    pairs = groupby(zip(ids, mask, strict=True), key=lambda pair: pair[1])
    return [[token for token, _ in run] for own, run in pairs if own]
