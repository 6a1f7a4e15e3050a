"""A tiny Qwen2 policy with random weights and a tokenizer trained on the sample: the CPU default's model.

Small enough that a cold start from scratch takes minutes on two cores, and of an architecture that vLLM and verl
already know, so that nothing else in a recipe changes between it and a real model.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from transformers import Qwen2Config, Qwen2ForCausalLM, Qwen2Tokenizer, set_seed

_PAD, _START, _END = "<|endoftext|>", "<|im_start|>", "<|im_end|>"
_TOOL_ANSWER = (  # as Qwen writes it: consecutive answers in one user turn
    "{% if loop.previtem is not defined or loop.previtem['role'] != 'tool' %}<|im_start|>user{% endif %}"
    "{{ '\\n<tool_response>\\n' }}{{ m['content'] }}{{ '\\n</tool_response>' }}"
    "{% if loop.nextitem is not defined or loop.nextitem['role'] != 'tool' %}{{ '<|im_end|>\\n' }}{% endif %}"
)
_CHAT_TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'tool' %}" + _TOOL_ANSWER + "{% else %}"
    "<|im_start|>{{ m['role'] }}\n{{ m['content'] }}{{ '<|im_end|>\\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
_TOOL_MARKS = "<tool_response>\n</tool_response>\n<tool_call>\n</tool_call>\n"


@dataclass(frozen=True, slots=True)
class TinyPolicyShape:
    """Sizes of the policy. Heads are 32 wide: vLLM's CPU attention needs at least that."""

    vocab_size: int = 1024
    hidden_size: int = 128
    layers: int = 4
    max_positions: int = 4096
    initializer_range: float = 0.06  # about 0.7 / sqrt(128); Qwen2's 0.02 learns more slowly at this width


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Qwen2Tokenizer:
    """A byte-level BPE tokenizer with Qwen2's word splitting (single digits: numbers can be copied) and ChatML.

    Where the texts call tools, the marks of tool calls and answers become words of few tokens.
    """
    known = list(texts)
    marks = [_TOOL_MARKS] * 200 if any("<tool_call>" in text for text in known) else []
    tokenizer = Qwen2Tokenizer().train_new_from_iterator(
        [*known, *marks, *["system\nuser\nassistant\n"] * 50], vocab_size, new_special_tokens=[_PAD, _START, _END]
    )
    tokenizer.eos_token, tokenizer.pad_token = _END, _PAD
    tokenizer.chat_template = _CHAT_TEMPLATE
    return tokenizer


def build_tiny_policy(texts: Sequence[str], out: Path, shape: TinyPolicyShape | None = None, seed: int = 0) -> int:
    """Train the tokenizer on `texts`, draw the weights from `seed`, save both under `out`.

    Returns:
        The number of parameters.
    """
    shape = shape or TinyPolicyShape()
    tokenizer = train_tokenizer(texts, shape.vocab_size)
    set_seed(seed)
    config = Qwen2Config(
        vocab_size=(len(tokenizer) + 63) // 64 * 64,
        hidden_size=shape.hidden_size,
        intermediate_size=shape.hidden_size * 8 // 3 // 64 * 64,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.hidden_size // 32,
        num_key_value_heads=max(1, shape.hidden_size // 64),
        max_position_embeddings=shape.max_positions,
        initializer_range=shape.initializer_range,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = Qwen2ForCausalLM(config).float()
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    (out / "tiny_policy.json").write_text(json.dumps({"seed": seed, "texts": len(texts)}))
    return sum(p.numel() for p in model.parameters())
