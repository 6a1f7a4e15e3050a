"""The n-gram term: overlap of token n-grams of the two SQL strings."""

from functools import lru_cache

from verl_sql.rewards.sample import Sample
from verl_sql.sqltext.similarity import jaccard
from verl_sql.sqltext.tokens import sql_tokens


def bigram_jaccard(sample: Sample) -> float:
    """Jaccard of token bigrams (Reasoning-SQL §3.2, n-gram similarity, N = 2); 0 without an answer.

    Tokens are those of `verl_sql.sqltext.tokens`: case of keywords, white space and comments do not count.
    """
    return ngram_jaccard(sample.sql, sample.gold) if sample.sql else 0.0


def ngram_jaccard(pred: str, gold: str, n: int = 2) -> float:
    """Jaccard of the sets of token n-grams of two SQL strings, in [0, 1]."""
    return jaccard(ngrams(pred, n), ngrams(gold, n))


@lru_cache(maxsize=8192)
def ngrams(sql: str, n: int = 2) -> frozenset[tuple[str, ...]]:
    """The distinct n-grams of a query's tokens."""
    tokens = sql_tokens(sql)
    return frozenset(zip(*(tokens[i:] for i in range(n)), strict=False))
