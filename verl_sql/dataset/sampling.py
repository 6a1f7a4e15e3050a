"""Stratified samples that do not depend on the order of the examples or on what else is in the file."""

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from enum import StrEnum

from verl_sql.dataset.example import Example
from verl_sql.sqltext.complexity import complexity


class Stratum(StrEnum):
    """What a sample is balanced by."""

    DIFFICULTY = "difficulty"
    """The dataset's label, or the complexity where it has none."""
    COMPLEXITY = "complexity"
    """The number of SQL constructs of the gold (Think2SQL)."""
    DATABASE = "database"
    """The database."""


def stratum_of(example: Example, by: Stratum) -> str:
    """The stratum that an example belongs to."""
    if by is Stratum.DATABASE:
        return example.db_id
    return example.difficulty if by is Stratum.DIFFICULTY and example.difficulty else str(complexity(example.gold_sql))


def stratified_sample(members: Iterable[tuple[str, Hashable]], count: int, seed: int = 0) -> set[str]:
    """`count` ids, each stratum with its share of the whole (largest remainders), chosen by a hash of the id.

    Args:
        members: (id, stratum) of everything there is to choose from.
        count: how many to choose; all of them if there are fewer.
        seed: another seed chooses others.
    """
    strata: dict[Hashable, list[str]] = defaultdict(list)
    for name, stratum in members:
        strata[stratum].append(name)
    shares = allocate({stratum: len(names) for stratum, names in strata.items()}, count)
    return {
        name
        for stratum, names in strata.items()
        for name in sorted(names, key=lambda n: _rank(n, seed))[: shares[stratum]]
    }


def allocate(sizes: Mapping[Hashable, int], count: int) -> dict[Hashable, int]:
    """`count` divided in proportion to `sizes`: whole parts first, then the largest remainders, ties by name."""
    total = sum(sizes.values())
    if count >= total:
        return dict(sizes)
    shares = {name: size * count // total for name, size in sizes.items()}
    rest = sorted(sizes, key=lambda name: (-(sizes[name] * count % total), str(name)))
    for name in rest[: count - sum(shares.values())]:
        shares[name] += 1
    return shares


def _rank(name: str, seed: int) -> str:
    """A number drawn for an id, the same every time."""
    return hashlib.sha256(f"{seed}/{name}".encode()).hexdigest()
