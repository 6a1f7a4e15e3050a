"""Class probabilities of every token of a text, from a vLLM engine in this process."""

from collections.abc import Sequence
from typing import Any

from verl_sql.generation.sampler import SamplingError


class VllmTokenClassifier:
    """A token classification model (`…ForTokenClassification`) that vLLM runs.

    Args:
        model: folder or hub name of the weights.
        engine: further arguments of `vllm.LLM` (dtype, max_model_len, …).

    Raises:
        SamplingError: vLLM is not installed.
    """

    def __init__(self, model: str, **engine: Any) -> None:
        """Load the model; takes seconds to minutes."""
        try:
            from vllm import LLM
        except ImportError as error:
            raise SamplingError("vLLM is not installed; use an endpoint or transformers") from error
        # A token's probabilities are wanted for each token: a text is read in one go, and anew each time.
        fixed = {"runner": "pooling", "enable_prefix_caching": False, "enable_chunked_prefill": False}
        self._engine = LLM(model=model, **{**fixed, **engine})

    @property
    def max_length(self) -> int:
        """The longest text, in tokens."""
        return int(self._engine.llm_engine.model_config.max_model_len)

    def probabilities(self, texts: Sequence[Sequence[int]]) -> list[Any]:
        """Probabilities for each text of T token ids: a tensor (T, classes)."""
        if not texts:
            return []
        prompts = [{"prompt_token_ids": list(ids)} for ids in texts]
        outputs = self._engine.encode(prompts, pooling_task="token_classify", use_tqdm=False)
        return [output.outputs.data for output in outputs]
