"""The diversity filter of Reward-SQL (§4.1): chains of one question that are built alike are thinned out.

A chain's shape is the pre-order sequence of its tree's node labels (the node classes: names, aliases and literals do
not count); the distance of two shapes is their edit distance over the longer length, in [0, 1].
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence

from rapidfuzz.distance import Levenshtein
from sqlglot import exp

from verl_sql.sqltext.parse import parse_sql

_NAMES = (exp.Identifier, exp.TableAlias, exp.Alias)


def shape(chain: str) -> tuple[str, ...]:
    """Pre-order node labels of a chain; empty when sqlglot gives no tree."""
    tree = parse_sql(chain).tree
    if tree is None:
        return ()
    return tuple(node.key for node in tree.walk(bfs=False) if not isinstance(node, _NAMES))


def distance(left: Sequence[Hashable], right: Sequence[Hashable]) -> float:
    """Edit distance of two shapes over the longer length, in [0, 1]; two empty ones are 0 apart."""
    return Levenshtein.normalized_distance(left, right)


def diverse(chains: Sequence[str], threshold: float) -> list[str]:
    """The chains of one question that are kept, in their order: each at least `threshold` from all kept before.

    With threshold 0 only repeats of a text are dropped.
    """
    kept: list[tuple[str, tuple[str, ...]]] = []
    for chain in dict.fromkeys(chains):
        own = shape(chain)
        if all(distance(own, other) >= threshold for _, other in kept):
            kept.append((chain, own))
    return [chain for chain, _ in kept]


def kept_at(questions: Mapping[str, Sequence[str]], thresholds: Iterable[float]) -> dict[float, int]:
    """How many chains of all questions each threshold keeps."""
    return {t: sum(len(diverse(chains, t)) for chains in questions.values()) for t in thresholds}
