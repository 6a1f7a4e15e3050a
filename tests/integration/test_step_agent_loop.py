"""The agent loop `verl_sql_steps` as verl's worker runs it, with scripted tokens in place of a model."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("verl")

from omegaconf import OmegaConf
from verl.experimental.agent_loop.agent_loop import AgentLoopOutput, AgentLoopWorker, ToolListWrap, _agent_loop_registry
from verl.utils.dataset.rl_dataset import RLHFDataset
from verl.workers.rollout.replica import TokenOutput

from verl_sql.integration.tiny_policy import train_tokenizer

CHAIN = "WITH añ AS (SELECT 1), b AS (SELECT 2) SELECT * FROM b"
PROMPT = [{"role": "system", "content": "s"}, {"role": "user", "content": "team(name)"}]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return train_tokenizer([CHAIN] * 20, 380)


class Server:
    """Stands where verl's LLM client stands and always says the same."""

    def __init__(self, ids: list[int]) -> None:
        self.ids = ids

    async def generate(self, **_: Any) -> TokenOutput:
        return TokenOutput(token_ids=self.ids, log_probs=[-0.5] * len(self.ids), num_preempted=0, extra_fields={})


class Worker(AgentLoopWorker):
    """verl's worker from the point where a loop is made on: what it would get from its configuration is given."""

    def __init__(self, tokenizer: Any, ids: list[int], response_length: int, style: str | None) -> None:
        rollout = {"prompt_length": 200, "response_length": response_length}
        reward = {"custom_reward_function": {"reward_kwargs": {"style": style} if style else {}}}
        self.config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}, "data": {}, "reward": reward})
        self.llm_client, self.tokenizer, self.processor = Server(ids), tokenizer, None
        self.hf_model_type, self.dataset_cls, self.tools = "qwen2", RLHFDataset, ToolListWrap([]).tools

    async def _agent_loop_postprocess(self, output: Any, validate: bool, **_: Any) -> Any:
        return output


def run(
    tokenizer: Any, text: str, validate: bool = False, response_length: int = 100, style: str | None = None
) -> AgentLoopOutput:
    """One rollout."""
    worker = Worker(tokenizer, [*tokenizer.encode(text), tokenizer.eos_token_id], response_length, style)
    trajectory = {"step": 1, "sample_index": 0, "rollout_n": 0, "validate": validate}
    return asyncio.run(
        worker._run_agent_loop({}, trajectory, agent_name="verl_sql_steps", trace=False, raw_prompt=PROMPT)
    )


def test_the_plugin_registers_it_when_verl_loads_its_own() -> None:
    assert _agent_loop_registry["verl_sql_steps"]["_target_"].endswith("step_agent_loop.StepAgentLoop")


def test_spans_prompt_and_purpose_travel_with_the_sample(tokenizer: Any) -> None:
    output = run(tokenizer, f"So:\n```sql\n{CHAIN}\n```")
    parts = [tokenizer.decode(output.response_ids[start:end]) for start, end in output.extra_fields["step_spans"]]
    assert [part.strip(" ,") for part in parts] == ["añ AS (SELECT 1)", "b AS (SELECT 2)"]
    assert output.extra_fields["raw_prompt"] == PROMPT
    assert output.extra_fields["validate"] is False
    assert all(type(at) is int for span in output.extra_fields["step_spans"] for at in span)


def test_a_response_at_its_length_limit_gives_its_whole_steps(tokenizer: Any) -> None:
    whole = run(tokenizer, CHAIN)
    first = whole.extra_fields["step_spans"][0]
    cut = run(tokenizer, CHAIN, response_length=first[1] + 2)
    assert len(cut.response_ids) == first[1] + 2
    assert cut.extra_fields["step_spans"] == [first]


@pytest.mark.parametrize("validate", [True, False])
def test_it_knows_whether_it_validates(tokenizer: Any, validate: bool) -> None:
    assert run(tokenizer, "SELECT 1", validate).extra_fields["validate"] is validate


def test_the_answer_is_looked_for_where_the_reward_looks(tokenizer: Any) -> None:
    text = f"{CHAIN}\n\n<answer>SELECT 1</answer>"
    assert len(run(tokenizer, text).extra_fields["step_spans"]) == 1
    assert len(run(tokenizer, text, style="bare").extra_fields["step_spans"]) == 2
