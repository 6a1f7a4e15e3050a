"""What became of a gold query on its way to a chain of CTEs."""

from enum import StrEnum


class ChainOutcome(StrEnum):
    """How the conversion of one gold query ended."""

    CHAIN = "chain"
    """A chain of one or more CTEs, equal to the gold by execution."""
    SINGLE = "single"
    """The query is one stage; its chain is the query itself, one step."""
    KEPT = "kept"
    """The row already had a chain; it was left alone."""
    GOLD_FAILS = "gold_fails"
    """The gold query does not run."""
    NO_DATABASE = "no_database"
    """There is no database to verify on."""
    UNPARSED = "unparsed"
    """sqlglot gives no tree for the gold query."""
    UNRESOLVED = "unresolved"
    """A name of the gold query belongs to no table in sight (a view, a table-valued function, an error)."""
    UNSUPPORTED = "unsupported"
    """The gold query uses a construct that the rules do not take apart."""
    DIFFERS = "differs"
    """No rewriting gave the gold's result."""
    PREFIX_FAILS = "prefix_fails"
    """A rewriting gave the gold's result, but one of its prefixes does not run."""
    NOT_SPLIT = "not_split"
    """A rewriting does not come apart into the steps it was made of."""


CONVERTED = frozenset({ChainOutcome.CHAIN, ChainOutcome.SINGLE, ChainOutcome.KEPT})
"""Outcomes with a chain."""


class Unconvertible(Exception):
    """A query that the rules do not convert; `outcome` says why."""

    def __init__(self, outcome: ChainOutcome, detail: str) -> None:
        """Keep the reason beside the message."""
        super().__init__(detail)
        self.outcome = outcome
