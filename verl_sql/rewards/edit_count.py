"""The execution-based term of Sparks of Tabular Reasoning: how many changes the prediction needs."""

from rapidfuzz.distance import Levenshtein

from verl_sql.rewards.sample import Sample
from verl_sql.sqltext.tokens import sql_tokens


def edit_count(sample: Sample) -> float:
    """1 / (x + 1), x = changes needed to make the prediction correct (Eq. 2); 0 without an answer.

    x is 0 for a prediction that executes to the gold's result, else what the judge counted, else, without a judge, a
    stand-in: the token edits (insertion, deletion, substitution) between the two SQL strings.
    """
    if not sample.sql:
        return 0.0
    if sample.right:
        return 1.0
    return changes_reward(sample.judged.get("changes", token_edits(sample.sql, sample.gold)))


def changes_reward(changes: float) -> float:
    """1 / (x + 1) for x changes."""
    return 1.0 / (changes + 1.0)


def token_edits(pred: str, gold: str) -> int:
    """Levenshtein distance between two SQL strings, counted in tokens."""
    return int(Levenshtein.distance(sql_tokens(pred), sql_tokens(gold)))
