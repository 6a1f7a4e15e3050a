"""A critic without flash-attention: verl 0.9.1 asks for that by name when it loads a value model.

`verl.utils.model.load_valuehead_model` passes `attn_implementation="flash_attention_2"` and, when that fails, looks for
trl. On a CPU its place is taken by the same call with the attention that `override_config` names.
"""

from types import ModuleType
from typing import Any

ATTENTION = "sdpa"


def install(module: ModuleType) -> None:
    """Replace the function in `verl.utils.model`; the FSDP engine looks it up there each time it builds a critic."""
    module.load_valuehead_model = load_valuehead_model  # type: ignore[attr-defined]


def load_valuehead_model(local_path: str, torch_dtype: Any, model_config: Any, trust_remote_code: bool) -> Any:
    """The policy's weights under a head of one value a token; the head's are drawn at random.

    Args:
        local_path: folder of a causal model or of a critic.
        torch_dtype: of the weights.
        model_config: the model's config with `num_labels` 1, as verl prepares it.
        trust_remote_code: passed on to transformers.
    """
    from transformers import AutoModelForTokenClassification

    attention = getattr(model_config, "_attn_implementation", None)
    return AutoModelForTokenClassification.from_pretrained(
        local_path,
        dtype=torch_dtype,
        config=model_config,
        attn_implementation=ATTENTION if attention in (None, "flash_attention_2") else attention,
        trust_remote_code=trust_remote_code,
    )
