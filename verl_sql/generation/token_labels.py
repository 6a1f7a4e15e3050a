"""Probabilities of a token classifier at every token, with a vLLM engine in this process."""

from collections.abc import Sequence
from typing import Any

from verl_sql.generation.sampler import SamplingError


class VllmTokenClassifier:
    """A checkpoint of a token classifier (`…ForTokenClassification`), loaded with vLLM's pooling runner.

    Args:
        model: folder or hub name.
        engine: further arguments of `vllm.LLM` (dtype, max_model_len, …).

    Raises:
        SamplingError: vLLM is not installed.
    """

    def __init__(self, model: str, **engine: Any) -> None:
        """Load the model; takes seconds to minutes."""
        try:
            from vllm import LLM
        except ImportError as error:
            raise SamplingError("vLLM is not installed; use transformers or the recipes' environment") from error
        self._engine = LLM(model=model, runner="pooling", **engine)

    @property
    def max_length(self) -> int:
        """Tokens of the longest input."""
        return int(self._engine.model_config.max_model_len)

    def probabilities(self, inputs: Sequence[Sequence[int]]) -> list[list[list[float]]]:
        """For each input of T token ids the T rows of probabilities, one a class; the batch goes in at once."""
        prompts = [{"prompt_token_ids": list(ids)} for ids in inputs]
        found = self._engine.encode(prompts, pooling_task="token_classify", use_tqdm=False)
        return [output.outputs.data.float().tolist() for output in found]
