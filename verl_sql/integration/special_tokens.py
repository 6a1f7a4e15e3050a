"""The texts that a tokenizer turns into tokens of their own: what no database text may spell on its way to a policy."""

import re
from functools import lru_cache
from typing import Any

_PLAIN = re.compile(r"[\w\s]*")


@lru_cache(maxsize=8)
def special_texts(tokenizer: Any) -> frozenset[str]:
    """Special and added tokens of a transformers tokenizer, for `verl_sql.sqltext.quoting.neutral`.

    Added tokens that are plain words or white space carry no structure and are left out.
    """
    added = {*tokenizer.get_added_vocab(), *map(str, tokenizer.all_special_tokens)}
    return frozenset(token for token in added if not _PLAIN.fullmatch(token))
