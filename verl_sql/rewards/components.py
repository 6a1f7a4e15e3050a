"""The component-matching term of Sparks of Tabular Reasoning."""

from functools import lru_cache

from verl_sql.rewards.sample import Sample
from verl_sql.sqltext.clauses import clause_tokens
from verl_sql.sqltext.similarity import bag_f1


def component_match(sample: Sample) -> float:
    """Token F1 per clause, averaged over the clauses that either query has (§3.2.2, Component-Level Matching).

    Clauses: SELECT, FROM with its joins, WHERE, GROUP BY, HAVING, ORDER BY, LIMIT. Tokens are counted with their
    multiplicity; the clause's own keyword is none of them. A clause that one side lacks scores 0.
    """
    return component_f1(sample.sql, sample.gold) if sample.sql else 0.0


def component_f1(pred: str, gold: str) -> float:
    """The mean clause F1 of two SQL strings, in [0, 1]."""
    scores = clause_scores(pred, gold)
    return sum(scores.values()) / len(scores) if scores else 0.0


@lru_cache(maxsize=8192)
def clause_scores(pred: str, gold: str) -> dict[str, float]:
    """Token F1 of each clause that either query has; treat the dict as read-only."""
    have, want = clause_tokens(pred), clause_tokens(gold)
    return {
        clause: bag_f1(have[clause], want[clause]) if clause in have and clause in want else 0.0
        for clause in dict.fromkeys((*want, *have))
    }
