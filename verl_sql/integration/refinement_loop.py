"""Agent loop `verl_sql_refine` (Progress-SQL): the policy answers, reads what is wrong with its SQL, and answers again.

In training the feedback is a diagnosis against the gold and the trajectory ends when the SQL is right; in validation,
and wherever nobody said that it is training, the feedback is what the execution gave, the gold is not looked at, and
the trajectory ends with the first SQL that runs without cause to complain or repeats an earlier one. It ends, too, when
its turns or tokens are used up, and then counts as it stands. Feedback is a user message between `<tool_response>` tags
and has mask 0: no loss falls on it. Written against verl 0.9.1 (verl/experimental/agent_loop/tool_agent_loop.py shows
how turns, masks and log-probabilities are put together there).

The extra fields, which the reward function gets as `extra_info`: `attempts` (each turn's SQL), `own_turns` (JSON of
what the policy wrote), `feedback` (what it was told), `ended` (why it ended) and `validate`.
"""

import functools
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register
from verl.utils.profiler import simple_timer
from verl.utils.rollout_trace import rollout_trace_op
from verl.workers.rollout.replica import TokenOutput

from verl_sql.database.catalog import resolve_database
from verl_sql.integration.refinement_feedback import Feedback, Question
from verl_sql.integration.refinement_settings import RefinementSettings, reward_settings
from verl_sql.integration.special_tokens import special_texts
from verl_sql.integration.trajectories import write_trajectory
from verl_sql.integration.validation_flag import validating
from verl_sql.sqltext.extract import extract_answer
from verl_sql.sqltext.turns import feedback_text

AGENT_NAME = "verl_sql_refine"


@dataclass(slots=True)
class _Talk:
    """A trajectory that is being made; ids are prompt and response, mask and logprobs the response's alone.

    `cut` says that the last attempt ran into its limit of tokens.
    """

    messages: list[dict[str, Any]]
    ids: list[int]
    request_id: str
    priority: int
    mask: list[int] = field(default_factory=list)
    logprobs: list[float] | None = None
    attempts: list[str] = field(default_factory=list)
    own: list[str] = field(default_factory=list)
    feedback: list[str] = field(default_factory=list)
    metrics: dict[str, Any] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    cut: bool = False
    ended: str = ""


@register(AGENT_NAME)
class RefinementLoop(AgentLoopBase):
    """Attempts and feedback until the SQL is right, or nothing more is to be said or spent."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Read the options.

        Raises:
            ValueError: an option makes no sense.
        """
        super().__init__(*args, **kwargs)
        self.options = RefinementSettings.from_config(self.config)
        self.scoring = reward_settings(self.config)
        self.response_length = self.rollout_config.response_length

    @rollout_trace_op
    async def run(self, sampling_params: dict[str, Any], priority: int = 0, **kwargs: Any) -> AgentLoopOutput:
        """One trajectory.

        Raises:
            DatabaseNotFound: the question's database is not there.
        """
        question = self._question(kwargs)
        messages = [dict(message) for message in kwargs["raw_prompt"]]
        ids = await self.ct_build_initial_tokens(messages)
        talk = _Talk(messages, ids, self._request_id(int(priority)), int(priority))
        prompt_length = len(ids)
        feedback = Feedback(question, self.options, self.scoring, special_texts(self.tokenizer))
        while not talk.ended:
            await self._attempt(talk, sampling_params)
            with simple_timer("tool_calls", talk.metrics):
                text, talk.ended = await feedback.after(talk.attempts)
            if not talk.ended and not await self._tell(talk, text):
                talk.ended = "tokens"
        output = self._output(talk, prompt_length, question)
        self._write(output, talk, kwargs)
        return output

    def _question(self, kwargs: dict[str, Any]) -> Question:
        """What is asked, and, in training alone, what is right."""
        info = kwargs.get("extra_info") or {}
        database = resolve_database(info.get("db_id"), self.scoring.db_root, info)
        if validating.get() is not False:
            return Question(database, ())
        gold, chain = kwargs["reward_model"]["ground_truth"], info.get("gold_chain")
        return Question(database, (gold, chain) if chain else (gold,))

    def _request_id(self, priority: int) -> str:
        """One id for all turns of a trajectory: they go to the same server."""
        return f"det-{priority}" if getattr(self.rollout_config, "full_determinism", False) else uuid4().hex

    async def _attempt(self, talk: _Talk, sampling_params: dict[str, Any]) -> None:
        """Let the policy answer once, within the tokens that are left."""
        left = self.response_length - len(talk.mask)
        limit = min(left, self.options.turn_tokens or left)
        with simple_timer("generate_sequences", talk.metrics):
            output: TokenOutput = await self.server_manager.generate(
                request_id=talk.request_id,
                prompt_ids=talk.ids,
                sampling_params={**sampling_params, "max_tokens": limit},
                priority=talk.priority,
            )
        _note(talk, output)
        if talk.logprobs is None and output.log_probs is not None:
            talk.logprobs = [0.0] * len(talk.mask)
        merged, talk.mask, talk.logprobs = await self.ct_merge_assistant_token(
            talk.ids, output.token_ids, talk.mask, talk.logprobs, assistant_logprobs=output.log_probs
        )
        talk.ids, talk.cut = merged.token_ids, len(output.token_ids) >= limit
        text = await self.loop.run_in_executor(None, functools.partial(self._decode, output.token_ids))
        talk.own.append(text)
        talk.attempts.append(extract_answer(text, self.scoring.style or "auto").sql or "")
        talk.messages.append({"role": "assistant", "content": text})

    async def _tell(self, talk: _Talk, text: str) -> bool:
        """Append feedback; returns whether it fits with room for another attempt, and changes nothing if not."""
        message = {"role": "user", "content": feedback_text(text)}
        ids, mask, logprobs = self._closed(talk)
        merged, mask, logprobs = await self.ct_merge_context_msg(
            talk.messages, [*talk.messages, message], ids, mask, logprobs
        )
        if len(mask) + self.options.min_tokens > self.response_length:
            return False
        talk.ids, talk.mask, talk.logprobs = merged.token_ids, mask, logprobs
        talk.messages.append(message)
        talk.feedback.append(text)
        return True

    def _closed(self, talk: _Talk) -> tuple[list[int], list[int], list[float] | None]:
        """Tokens, mask and log-probabilities; a turn that ran out of its tokens gets the end that it lacks, masked."""
        if not talk.cut or talk.ids[-1] in self.tokenizer.all_special_ids:
            return talk.ids, talk.mask, talk.logprobs
        logprobs = None if talk.logprobs is None else [*talk.logprobs, 0.0]
        return [*talk.ids, self.tokenizer.eos_token_id], [*talk.mask, 0], logprobs

    def _decode(self, ids: list[int]) -> str:
        """A turn's text."""
        return str(self.tokenizer.decode(ids, skip_special_tokens=True))

    def _output(self, talk: _Talk, prompt_length: int, question: Question) -> AgentLoopOutput:
        """The trajectory as verl takes it."""
        length = self.response_length
        talk.extra.update(
            attempts=talk.attempts,
            own_turns=json.dumps(talk.own, ensure_ascii=False),
            feedback=talk.feedback,
            ended=talk.ended,
            validate=bool(validating.get()),
            turn_scores=[],
            tool_rewards=[],
        )
        return AgentLoopOutput(
            prompt_ids=talk.ids[:prompt_length],
            response_ids=talk.ids[prompt_length:][:length],
            response_mask=talk.mask[:length],
            response_logprobs=None if talk.logprobs is None else talk.logprobs[:length],
            num_turns=len(talk.own) + len(talk.feedback) + 1,
            metrics=talk.metrics,
            extra_fields=talk.extra,
        )

    def _write(self, output: AgentLoopOutput, talk: _Talk, kwargs: dict[str, Any]) -> None:
        """Write the trajectory down, if a folder is named."""
        if not self.options.trajectories:
            return
        info = kwargs.get("extra_info") or {}
        write_trajectory(
            Path(self.options.trajectories),
            {
                "input": self.tokenizer.decode(output.prompt_ids, skip_special_tokens=True),
                "output": self.tokenizer.decode(output.response_ids, skip_special_tokens=True),
                "gts": kwargs["reward_model"]["ground_truth"],
                "db_id": info.get("db_id"),
                "uid": f"{kwargs.get('uid', '')}_{kwargs.get('session_id', 0)}",
                "step": int(kwargs.get("global_steps", -1)),
                "validate": talk.extra["validate"],
                "ended": talk.ended,
                "turns": [{"role": m["role"], "content": m["content"]} for m in talk.messages[-_spoken(talk) :]],
                "extra_info": {"attempts": talk.attempts, "gold_chain": info.get("gold_chain") or ""},
            },
        )


def _spoken(talk: _Talk) -> int:
    """Messages after the prompt."""
    return len(talk.own) + len(talk.feedback)


def _note(talk: _Talk, output: TokenOutput) -> None:
    """Carry over what the server says beside the tokens: of the first turn all, of later ones the newest version."""
    if not talk.own:
        talk.metrics["num_preempted"] = -1 if output.num_preempted is None else output.num_preempted
    else:
        talk.metrics["num_preempted"] += output.num_preempted or 0
    if not talk.extra:
        talk.extra.update(output.extra_fields)
    elif output.extra_fields.get("max_global_steps") is not None:
        talk.extra["max_global_steps"] = output.extra_fields["max_global_steps"]
