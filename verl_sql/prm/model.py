"""A reward model to train: a token classifier on top of a policy, whose tokenizer knows the step tag.

At each tag its two classes say "wrong" and "correct" (Reward-SQL §4.2: softmax over the two at the tagged positions).
"""

from pathlib import Path
from typing import Any

from verl_sql.prm.rendering import STEP_TAG

LABELS = {0: "wrong", 1: "correct"}
CORRECT = 1
"""The class whose probability is the score of a step."""
OUTCOME_KEY, FINAL_KEY = "verl_sql_outcome", "verl_sql_score_final"
"""In a checkpoint's config: whether it is an outcome model, and whether it reads and scores the final query."""


def make_prm(
    policy: str | Path, out: str | Path, *, outcome: bool = False, score_final: bool = False, dtype: str = "float32"
) -> Path:
    """Write a reward model that is not trained yet; transformers and vLLM load the folder.

    Args:
        policy: folder or hub name of a causal model of an architecture that has a token classifier.
        out: folder to write.
        outcome: whether it is to be an outcome model, which scores the final query alone.
        score_final: whether a process reward model is to score the final query like a step.
        dtype: of the weights.

    Returns:
        `out`.

    Raises:
        FileNotFoundError: `policy` looks like a folder and is none.
    """
    model, tokenizer = init_prm(policy, outcome=outcome, score_final=score_final, dtype=dtype)
    model.save_pretrained(out)
    tokenizer.save_pretrained(out)
    return Path(out)


def init_prm(
    policy: str | Path, *, outcome: bool = False, score_final: bool = False, dtype: str = "float32"
) -> tuple[Any, Any]:
    """Model and tokenizer of `make_prm`, not written. Every score is 0.5 so far.

    Raises:
        FileNotFoundError: `policy` looks like a folder and is none.
    """
    from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer

    name = str(policy)
    if name.startswith((".", "/")) and not Path(name).is_dir():
        raise FileNotFoundError(f"there is no model folder {name}")
    tokenizer = AutoTokenizer.from_pretrained(name)
    tokenizer.add_tokens([STEP_TAG], special_tokens=True)
    label2id = {label: number for number, label in LABELS.items()}
    config = AutoConfig.from_pretrained(name, num_labels=len(LABELS), id2label=LABELS, label2id=label2id)
    config.tie_word_embeddings = False  # it has no language head
    config.classifier_dropout = 0.0
    setattr(config, OUTCOME_KEY, outcome)
    setattr(config, FINAL_KEY, score_final or outcome)
    model = AutoModelForTokenClassification.from_pretrained(name, config=config, dtype=dtype)
    if len(tokenizer) > model.get_input_embeddings().num_embeddings:
        model.resize_token_embeddings(len(tokenizer), pad_to_multiple_of=64, mean_resizing=False)
    _start_neutral(model, tokenizer.convert_tokens_to_ids(STEP_TAG))
    return model, tokenizer


def reads_final(folder: str | Path) -> bool:
    """Whether a checkpoint wants chains rendered with their final query."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(folder)
    return bool(getattr(config, FINAL_KEY, False) or getattr(config, OUTCOME_KEY, False))


def _start_neutral(model: Any, tag: int) -> None:
    """The tag starts as the mean of the tokens before it, the head at zero, so training starts from 0.5 everywhere."""
    import torch

    with torch.no_grad():
        embeddings = model.get_input_embeddings().weight
        embeddings[tag] = embeddings[:tag].mean(dim=0)
        head = getattr(model, "score", None) or model.classifier
        head.weight.zero_()
        if head.bias is not None:
            head.bias.zero_()
