"""From one gold query to chains of CTEs by rule: candidates, the furthest taken apart first. Nothing is run here."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from sqlglot.errors import SqlglotError

from verl_sql.database.introspect import DatabaseSchema
from verl_sql.dataset.cocte.nodes import Node, identifier, sql_of, unwrap
from verl_sql.dataset.cocte.plan import Depth
from verl_sql.dataset.cocte.reasons import ChainOutcome, Unconvertible
from verl_sql.dataset.cocte.render import render
from verl_sql.dataset.cocte.resolve import Resolver
from verl_sql.dataset.cocte.stages import count_stages
from verl_sql.dataset.cocte.staging import Stager
from verl_sql.sqltext.parse import parse_sql


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way to write a query as a chain.

    Attributes:
        chain: the text; the query itself, where it is a single stage.
        steps: number of CTEs; 0 for the query itself.
        depth: how far it was taken apart; None for a chain that no rule made.
        stages: stages of the query, see `count_stages`.
    """

    chain: str
    steps: int
    depth: Depth | None
    stages: int


def candidates(sql: str, schema: DatabaseSchema) -> Iterator[Candidate]:
    """Chains for a gold query, each text once, the furthest taken apart first.

    Args:
        sql: the gold query.
        schema: the database's schema, which tells strings in double quotes from names.

    Raises:
        Unconvertible: the query has no tree, a name that is not in the schema, or an unsupported construct.
    """
    parsed = parse_sql(sql)
    if parsed.tree is None:
        raise Unconvertible(ChainOutcome.UNPARSED, parsed.error or "")
    resolver = Resolver(schema)
    tree = unwrap(parsed.tree.copy())
    resolver.query(tree)
    stages = count_stages(tree)
    seen: set[str] = set()
    for depth, break_ties in product(Depth, (False, True)):
        stager = Stager(resolver.origins, {table.name for table in schema.tables}, depth, break_ties)
        candidate = _candidate(sql, tree, resolver, stager, stages)
        if candidate.chain not in seen:
            seen.add(candidate.chain)
            yield candidate


def _candidate(sql: str, tree: Node, resolver: Resolver, stager: Stager, stages: int) -> Candidate:
    """The chain that a stager makes."""
    try:
        final = stager.final(tree.copy())
        if final is None:
            return Candidate(sql.strip().rstrip("; \n\t"), 0, stager.depth, stages)
        aliases = {key: origin.alias for key, origin in resolver.origins.items()}
        items = [f"{sql_of(identifier(name))} AS ({render(query, aliases)})" for name, query in stager.steps]
        text = "WITH " + ",\n".join(items) + "\n" + render(final, aliases)
        return Candidate(text, len(items), stager.depth, stages)
    except (SqlglotError, RecursionError) as error:
        raise Unconvertible(ChainOutcome.UNSUPPORTED, str(error)) from error
