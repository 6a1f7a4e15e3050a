"""The endpoint sampler over real HTTP."""

import importlib.util
from typing import Any

import pytest

from verl_sql.generation.endpoint import EndpointSampler
from verl_sql.generation.offline import VllmSampler
from verl_sql.generation.sampler import Completion, Prompt, Sampling, SamplingError

ASK = Prompt(({"role": "user", "content": "one"},))


def sampler(endpoint: Any, **options: Any) -> EndpointSampler:
    return EndpointSampler(endpoint.url, api_key="none", **({"timeout": 5.0, "retries": 0} | options))


def test_completions_come_in_the_prompts_order(endpoint: Any) -> None:
    endpoint.reply = lambda _, body: (200, [(body["messages"][0]["content"] * 2, "stop")] * body["n"])
    prompts = [Prompt(({"role": "user", "content": str(i)},)) for i in range(40)]
    found = sampler(endpoint, concurrency=8).sample(prompts, Sampling(n=2))
    assert found == [[Completion(str(i) * 2, True)] * 2 for i in range(40)]
    assert endpoint.requests[0]["model"] == "listed-model"


def test_settings_reach_the_endpoint_and_the_length_limit_is_told(endpoint: Any) -> None:
    endpoint.reply = lambda _, body: (200, [("SELECT", "length")])
    asked = Sampling(1, temperature=0.5, top_p=0.9, max_tokens=7, seed=3, stop=("</sql>",))
    assert sampler(endpoint, model="m").sample([ASK], asked) == [[Completion("SELECT", False)]]
    body = endpoint.requests[0]
    wanted = {"model": "m", "n": 1, "temperature": 0.5, "top_p": 0.9, "max_tokens": 7, "seed": 3, "stop": ["</sql>"]}
    assert {key: body[key] for key in wanted} == wanted


def test_an_endpoint_that_gives_one_at_a_time_is_asked_again(endpoint: Any) -> None:
    endpoint.reply = lambda number, _: (200, [(str(number), "stop")])
    (found,) = sampler(endpoint).sample([ASK], Sampling(n=3, seed=10))
    assert [c.text for c in found] == ["1", "2", "3"]
    assert [r["seed"] for r in endpoint.requests] == [10, 11, 12]


def test_a_prefix_is_continued(endpoint: Any) -> None:
    sampler(endpoint).sample([Prompt(ASK.messages, "WITH a AS (SELECT 1)")], Sampling())
    body = endpoint.requests[0]
    assert body["messages"][-1] == {"role": "assistant", "content": "WITH a AS (SELECT 1)"}
    assert (body["continue_final_message"], body["add_generation_prompt"]) == (True, False)


def test_a_failed_request_is_tried_again(endpoint: Any) -> None:
    endpoint.reply = lambda number, _: (500 if number == 1 else 200, [("late", "stop")])
    assert sampler(endpoint, retries=1).sample([ASK], Sampling())[0][0].text == "late"


@pytest.mark.parametrize("reply", [(500, []), (401, []), (200, [])])
def test_no_completions_are_an_error(endpoint: Any, reply: tuple[int, list]) -> None:
    endpoint.reply = lambda *_: reply
    with pytest.raises(SamplingError, match="http://127"):
        sampler(endpoint).sample([ASK, ASK], Sampling())


def test_no_endpoint_is_an_error() -> None:
    with pytest.raises(SamplingError, match="lists no model"):
        EndpointSampler("http://127.0.0.1:9/v1", api_key="none", retries=0, timeout=2.0).sample([ASK], Sampling())


@pytest.mark.parametrize("options", [{"n": 0}, {"max_tokens": 0}, {"temperature": -1.0}])
def test_senseless_sampling_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="cannot sample"):
        Sampling(**options)


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is installed")
def test_vllm_is_imported_late() -> None:
    with pytest.raises(SamplingError, match="vLLM is not installed"):
        VllmSampler("nowhere")
