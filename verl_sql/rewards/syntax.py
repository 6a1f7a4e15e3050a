"""The syntax term: SQLite is the parser that counts."""

from verl_sql.rewards.sample import Sample


def syntax(sample: Sample) -> float:
    """1 when the prediction parses and executes without error (Reasoning-SQL §3.2; ReToolSQL, Table 1), else 0.

    A query that overran its deadline, tried to write or returned too much did not execute: 0. Whether sqlglot can
    read it plays no part, so a right answer always earns this term.
    """
    return float(bool(sample.sql) and sample.pred.ok)
