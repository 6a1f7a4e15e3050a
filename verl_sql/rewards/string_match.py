"""The string-matching term of Sparks of Tabular Reasoning."""

import logging
from difflib import SequenceMatcher
from functools import lru_cache

from func_timeout import FunctionTimedOut, func_timeout

from verl_sql.rewards.sample import Sample
from verl_sql.sqltext.tokens import without_comments

log = logging.getLogger(__name__)

MAX_SECONDS = 2.0
_QUICK = 400_000  # product of the two lengths below which difflib was measured to end within milliseconds


def string_match(sample: Sample) -> float:
    """2·M / (len(pred) + len(gold)), M the characters in matching blocks (§3.2.2, String Matching).

    difflib's ratio with autojunk off, on the two strings as written but for comments, which are no SQL. 0 without an
    answer.
    """
    return matching_ratio(without_comments(sample.sql), without_comments(sample.gold)) if sample.sql else 0.0


@lru_cache(maxsize=8192)
def matching_ratio(pred: str, gold: str) -> float:
    """difflib's ratio of two strings, in [0, 1]; 0.0, with a warning, when it takes longer than MAX_SECONDS."""
    if len(pred) * len(gold) <= _QUICK:
        return _ratio(pred, gold)
    try:
        return func_timeout(MAX_SECONDS, _ratio, args=(pred, gold))
    except FunctionTimedOut:
        log.warning("string match of %d and %d characters given up after %g s", len(pred), len(gold), MAX_SECONDS)
        return 0.0


def _ratio(pred: str, gold: str) -> float:
    """The ratio without a guard of time."""
    return SequenceMatcher(None, pred, gold, autojunk=False).ratio()
