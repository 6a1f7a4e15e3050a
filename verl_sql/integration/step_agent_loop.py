"""Agent loop `verl_sql_steps`: verl's single turn, with the token span of each step beside the response.

It adds to `extra_fields`, which travel with the sample to the reward function (as `extra_info`) and to the trainer:
`step_spans`, one [first token, one past the last) a step; `raw_prompt`, the chat that the process reward model reads in
front of the chain; `validate`, whether the sample belongs to a validation. Written against verl 0.9.1.
"""

import functools
from typing import Any

from omegaconf import OmegaConf
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, register
from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop

from verl_sql.integration.step_spans import StepFinder
from verl_sql.integration.validation_flag import validating

AGENT_NAME = "verl_sql_steps"

_STYLE = "reward.custom_reward_function.reward_kwargs.style"


@functools.cache
def _finder(tokenizer: Any, style: str) -> StepFinder:
    """One finder a tokenizer: verl makes a new agent loop for every rollout."""
    return StepFinder(tokenizer, style)


@register(AGENT_NAME)
class StepAgentLoop(SingleTurnAgentLoop):
    """A single turn whose steps are located in the sampled tokens."""

    async def run(self, sampling_params: dict[str, Any], priority: int = 0, **kwargs: Any) -> AgentLoopOutput:
        """Generate as verl does, then find the steps; the answer is looked for in the reward's style."""
        output = await super().run(sampling_params, priority, **kwargs)
        style = OmegaConf.select(self.config, _STYLE) or "auto"
        found = _finder(self.tokenizer, style).find(output.response_ids)
        output.extra_fields.update(
            step_spans=[list(span) for span in found.spans],
            raw_prompt=[dict(message) for message in kwargs["raw_prompt"]],
            validate=bool(validating.get()),
        )
        return output
