"""From a rendered chain to token ids, and the positions at which the model says how likely a step is correct.

Only our own tags become tag tokens: the text is cut at them, and the pieces between are read as plain text, in which
no special token exists.
"""

from collections.abc import Sequence
from typing import Any

from verl_sql.prm.rendering import STEP_TAG


def tag_id(tokenizer: Any) -> int:
    """The id of the step tag.

    Raises:
        ValueError: the tokenizer has no such token; it is not one of a process reward model.
    """
    found = tokenizer.get_added_vocab().get(STEP_TAG)
    if found is None:
        raise ValueError(
            f"the tokenizer has no token {STEP_TAG}: {getattr(tokenizer, 'name_or_path', '')} holds no process reward "
            "model (recipes/reward_sql_prm.sh makes one)"
        )
    return int(found)


def encode(tokenizer: Any, text: str, max_length: int | None = None) -> tuple[list[int], list[int]]:
    """Token ids of a rendered chain and the positions of its tags.

    Args:
        tokenizer: of a process reward model (transformers).
        text: a rendered chain.
        max_length: the model's longest input; of a longer text the beginning (of the schema) is left out.

    Returns:
        ids of length T, and as many positions in [0, T) as the text has tags. A tag that `max_length` cut off has
        position -1.

    Raises:
        ValueError: the tokenizer has no tag.
    """
    return encode_many(tokenizer, [text], max_length)[0]


def encode_many(
    tokenizer: Any, texts: Sequence[str], max_length: int | None = None
) -> list[tuple[list[int], list[int]]]:
    """`encode` for many texts in one call of the tokenizer; equal pieces are read once."""
    tag = tag_id(tokenizer)
    pieces = [text.split(STEP_TAG) for text in texts]
    distinct = list(dict.fromkeys(piece for own in pieces for piece in own))
    known = dict(zip(distinct, _plain_ids(tokenizer, distinct), strict=True))
    return [_joined([known[piece] for piece in own], tag, max_length) for own in pieces]


def _plain_ids(tokenizer: Any, pieces: list[str]) -> list[list[int]]:
    """Ids of texts in which nothing is a special token."""
    if not pieces:
        return []
    return tokenizer(pieces, add_special_tokens=False, split_special_tokens=True, return_attention_mask=False)[
        "input_ids"
    ]


def _joined(pieces: list[list[int]], tag: int, max_length: int | None) -> tuple[list[int], list[int]]:
    """Pieces with a tag between each two, cut at the front. What follows the last tag matters to none and is left."""
    ids, positions = list(pieces[0]), []
    for number, piece in enumerate(pieces[1:], start=1):
        positions.append(len(ids))
        ids += [tag, *(piece if number < len(pieces) - 1 else ())]
    cut = max(0, len(ids) - max_length) if max_length else 0
    return ids[cut:], [max(position - cut, -1) for position in positions]
