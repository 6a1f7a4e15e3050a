"""A reward model to train: a token classifier on top of a policy, whose tokenizer knows the step tag.

At each tag its two classes say "wrong" and "correct" (Reward-SQL §4.2: softmax over the two at the tagged positions).
"""

from pathlib import Path
from typing import Any

from verl_sql.prm.rendering import STEP_TAG

LABELS = {0: "wrong", 1: "correct"}
CORRECT = 1
"""The class whose probability is the score of a step."""


def make_reward_model(policy: str | Path, dtype: str = "float32") -> tuple[Any, Any]:
    """The classifier and its tokenizer, not trained yet: every score is 0.5.

    Args:
        policy: folder or hub name of a causal model of an architecture that has a token classifier.
        dtype: of the weights.

    Returns:
        model and tokenizer (transformers).

    Raises:
        FileNotFoundError: `policy` looks like a folder and is none.
    """
    from transformers import AutoModelForTokenClassification, AutoTokenizer

    name = str(policy)
    if name.startswith((".", "/")) and not Path(name).is_dir():
        raise FileNotFoundError(f"there is no model folder {name}")
    tokenizer = AutoTokenizer.from_pretrained(name)
    tokenizer.add_special_tokens({"additional_special_tokens": [STEP_TAG]})
    model = AutoModelForTokenClassification.from_pretrained(
        name, num_labels=2, id2label=LABELS, label2id={v: k for k, v in LABELS.items()}, dtype=dtype
    )
    model.config.classifier_dropout = 0.0
    if len(tokenizer) > model.config.vocab_size:
        model.resize_token_embeddings(len(tokenizer), pad_to_multiple_of=64)
    _start_neutral(model, tokenizer.convert_tokens_to_ids(STEP_TAG))
    return model, tokenizer


def _start_neutral(model: Any, tag: int) -> None:
    """The tag starts as the mean of all tokens, the head at zero, so that training starts from 0.5 everywhere."""
    import torch

    with torch.no_grad():
        embeddings = model.get_input_embeddings().weight
        embeddings[tag] = embeddings.mean(dim=0)
        head = getattr(model, "score", None) or model.classifier
        head.weight.zero_()
        if head.bias is not None:
            head.bias.zero_()
