"""Where a prefix may be cut so that the policy goes on from tokens that it writes itself.

In `…),` bracket and comma are often one token. A prefix that ends between them is tokenised in another way than the
chain it comes from, and what follows is not what the policy would write. So it is cut where a token of the whole chain
begins; the few characters between there and the step's end are sampled again, and completions that differ in them have
left the prefix.
"""

from functools import lru_cache
from typing import Any

from verl_sql.prm.tree import Cut


def at_the_end(completion: str, end: int) -> int:
    """For a policy whose tokenizer is not at hand."""
    return end


def token_cut(tokenizer: Any) -> Cut:
    """Cut at the last place up to the step's end that the chain's own tokens, and those of the cut prefix, agree on."""

    @lru_cache(maxsize=4)
    def read(text: str) -> tuple[list[int], list[tuple[int, int]]]:
        found = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
        return found["input_ids"], found["offset_mapping"]

    def cut(completion: str, end: int) -> int:
        ids, offsets = read(completion)
        for number in range(len(ids), 0, -1):
            start = offsets[number][0] if number < len(ids) else offsets[-1][1]
            if start <= end and tokenizer(completion[:start], add_special_tokens=False)["input_ids"] == ids[:number]:
                return start
        return 0

    return cut
