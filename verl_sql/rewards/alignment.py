"""Alignment of a prediction with the gold by their diagnostic trees (Progress-SQL)."""

from pathlib import Path

from rapidfuzz.distance import Levenshtein

from verl_sql.rewards.schema_items import names_of
from verl_sql.sqltext.profile import profile_of, structural_alignment
from verl_sql.sqltext.tokens import sql_tokens

ALPHA = 0.5
"""Share of the structural part; the paper's value is not public."""


def alignment(pred: str, gold: str, database: Path, alpha: float = ALPHA) -> float:
    """α·structural + (1 − α)·lexical, in [0, 1]; 0 for an empty prediction.

    Structural: clause-by-clause agreement of the diagnostic trees, nested queries and set operations included
    (`verl_sql.sqltext.profile`). Lexical: 1 − token edits / the longer query's tokens.
    """
    if not pred:
        return 0.0
    names = names_of(database)
    structural = structural_alignment(profile_of(pred, names), profile_of(gold, names))
    return alpha * structural + (1.0 - alpha) * lexical_alignment(pred, gold)


def lexical_alignment(pred: str, gold: str) -> float:
    """Normalised token edit similarity of two SQL strings, in [0, 1]."""
    return float(Levenshtein.normalized_similarity(sql_tokens(pred), sql_tokens(gold)))
