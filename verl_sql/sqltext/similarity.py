"""Overlap of two sets and of two bags, each in [0, 1]."""

from collections import Counter
from collections.abc import Hashable, Iterable, Set


def jaccard(left: Set[Hashable], right: Set[Hashable]) -> float:
    """|left ∩ right| / |left ∪ right|; 1.0 when both are empty."""
    union = len(left | right)
    return len(left & right) / union if union else 1.0


def bag_f1(left: Iterable[Hashable], right: Iterable[Hashable]) -> float:
    """F1 of two bags: 2·common / (|left| + |right|), duplicates counted; 1.0 when both are empty."""
    bag_l, bag_r = Counter(left), Counter(right)
    total = bag_l.total() + bag_r.total()
    return 2 * (bag_l & bag_r).total() / total if total else 1.0
