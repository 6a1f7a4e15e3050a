"""Completions from a vLLM engine in this process, for batches on a machine with the model's weights."""

from collections.abc import Sequence
from typing import Any

from verl_sql.generation.sampler import Completion, Prompt, Sampling, SamplingError


class VllmSampler:
    """A `Sampler` that loads the model with vLLM.

    Args:
        model: folder or hub name of the weights.
        engine: further arguments of `vllm.LLM` (dtype, max_model_len, tensor_parallel_size, …).

    Raises:
        SamplingError: vLLM is not installed.
    """

    def __init__(self, model: str, **engine: Any) -> None:
        """Load the model; takes seconds to minutes."""
        try:
            from vllm import LLM
        except ImportError as error:
            raise SamplingError("vLLM is not installed; use an endpoint or the recipes' environment") from error
        self._engine = LLM(model=model, **engine)

    def sample(self, prompts: Sequence[Prompt], sampling: Sampling) -> list[list[Completion]]:
        """See `Sampler`; the whole batch is handed to the engine at once."""
        if not prompts:
            return []
        texts = [{"prompt_token_ids": self._token_ids(prompt)} for prompt in prompts]
        results = self._engine.generate(texts, self._parameters(sampling), use_tqdm=False)
        return [[Completion(o.text, o.finish_reason != "length") for o in result.outputs] for result in results]

    def _parameters(self, sampling: Sampling) -> Any:
        """Our settings as vLLM's."""
        from vllm import SamplingParams

        return SamplingParams(
            n=sampling.n,
            temperature=sampling.temperature,
            top_p=sampling.top_p,
            max_tokens=sampling.max_tokens,
            seed=sampling.seed,
            stop=list(sampling.stop) or None,
        )

    def _token_ids(self, prompt: Prompt) -> list[int]:
        """The chat through the model's own template, with the beginning of the answer behind it."""
        tokenizer = self._engine.get_tokenizer()
        text = tokenizer.apply_chat_template(list(prompt.messages), add_generation_prompt=True, tokenize=False)
        return tokenizer(text + prompt.prefix, add_special_tokens=False)["input_ids"]
