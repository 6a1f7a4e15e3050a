"""A process reward model from a policy: the same body with a head of two classes, read at the step tags."""

from pathlib import Path
from typing import Any

from verl_sql.prm.rendering import STEP_TAG

LABELS = {0: "wrong", 1: "correct"}
_NUMBERS = {name: number for number, name in LABELS.items()}
CORRECT = 1
"""The class whose probability is the score."""
OUTCOME = "verl_sql_outcome"
"""Key of the checkpoint's config: whether it is an outcome model, which is also shown the final query."""


def make_prm(policy: str | Path, out: str | Path, *, outcome: bool = False, seed: int = 0) -> Path:
    """Write an untrained process reward model.

    Args:
        policy: folder (or hub name) of a causal language model with its tokenizer.
        out: folder to write; transformers and vLLM load it as a token classifier.
        outcome: note in its config that it is an outcome model.
        seed: of the head's weights.

    Returns:
        `out`. Its head is new, its tokenizer has the token STEP_TAG, whose embedding is the mean of all others.
    """
    model, tokenizer = init_prm(policy, outcome=outcome, seed=seed)
    save_prm(model, tokenizer, out)
    return Path(out)


def init_prm(policy: str | Path, *, outcome: bool = False, seed: int = 0) -> tuple[Any, Any]:
    """Model (float32) and tokenizer as `make_prm` writes them."""
    import torch
    from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer, set_seed

    set_seed(seed)
    tokenizer = AutoTokenizer.from_pretrained(policy)
    tokenizer.add_tokens([STEP_TAG], special_tokens=True)
    config = AutoConfig.from_pretrained(policy, num_labels=len(LABELS), id2label=LABELS, label2id=_NUMBERS)
    config.tie_word_embeddings = False  # there is no language head to tie to
    config.classifier_dropout = 0.0
    setattr(config, OUTCOME, outcome)
    model = AutoModelForTokenClassification.from_pretrained(policy, config=config, dtype=torch.float32)
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        _add_embeddings(model, len(tokenizer))
    _average_embedding(model, int(tokenizer.convert_tokens_to_ids(STEP_TAG)))
    return model, tokenizer


def save_prm(model: Any, tokenizer: Any, out: str | Path) -> None:
    """Write a checkpoint that transformers and vLLM load."""
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)


def is_outcome_model(folder: str | Path) -> bool:
    """Whether a checkpoint is an outcome model."""
    from transformers import AutoConfig

    return bool(getattr(AutoConfig.from_pretrained(folder), OUTCOME, False))


def _add_embeddings(model: Any, size: int) -> None:
    """Make room for new tokens; a multiple of 64 suits the hardware."""
    model.resize_token_embeddings(size, pad_to_multiple_of=64, mean_resizing=False)


def _average_embedding(model: Any, token: int) -> None:
    """Give a token the mean of all embeddings, so that it starts as nothing in particular."""
    import torch

    with torch.no_grad():
        weight = model.get_input_embeddings().weight
        weight[token] = weight[:token].mean(dim=0)
