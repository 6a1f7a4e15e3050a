"""Whether a rollout belongs to a validation: verl 0.9.1 keeps that from agent loops.

`AgentLoopWorker._run_agent_loop` has it in `trajectory` and gives the loop everything else. Importing this module has
that method note it in the context of the rollout's own task.
"""

import functools
from contextvars import ContextVar
from typing import Any

from verl.experimental.agent_loop.agent_loop import AgentLoopWorker

validating: ContextVar[bool | None] = ContextVar("verl_sql_validating", default=None)
"""True in a validation, False in training, None where nobody said so: then nothing may be shown that needs the gold."""


def _note_validation() -> None:
    """Wrap `_run_agent_loop`."""
    run = AgentLoopWorker._run_agent_loop

    @functools.wraps(run)
    async def noted(self: Any, sampling_params: dict[str, Any], trajectory: dict[str, Any], **kwargs: Any) -> Any:
        validating.set(bool(trajectory["validate"]))
        return await run(self, sampling_params, trajectory, **kwargs)

    AgentLoopWorker._run_agent_loop = noted


_note_validation()
