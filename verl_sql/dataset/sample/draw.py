"""The vocabulary of question templates: random choices over one database, and the question they add up to."""

import random
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from verl_sql.dataset.sample.databases import quoted
from verl_sql.dataset.sample.declarations import Column, Database, Role, Table

T = TypeVar("T")


class NoSuchColumnError(Exception):
    """The table that was drawn lacks a column that the template needs; draw again."""


@dataclass(frozen=True, slots=True)
class ChainText:
    """A chain of CTEs in the making: named steps and the final query."""

    steps: tuple[tuple[str, str], ...]
    final: str

    def __str__(self) -> str:
        steps = ",\n".join(f"{name} AS ({body})" for name, body in self.steps)
        return f"WITH {steps}\n{self.final}"


@dataclass(frozen=True, slots=True)
class Drawn:
    """One question: the words, the gold SQL, the gold chain, and the chain with its template's typical mistake."""

    question: str
    sql: str
    chain: ChainText
    flawed: ChainText | None = None


class Draw:
    """Random choices about one database, with the phrases that go with them."""

    def __init__(self, database: Database, connection: sqlite3.Connection, rng: random.Random) -> None:
        self.database = database
        self.connection = connection
        self.rng = rng
        self.used: list[Column] = []

    def pick(self, options: Sequence[T]) -> T:
        """One of the options; `NoSuchColumnError` when there is none."""
        if not options:
            raise NoSuchColumnError
        return self.rng.choice(options)

    def table(self) -> Table:
        """Parent or child."""
        return self.pick(self.database.tables)

    def column(self, table: Table, *roles: Role) -> Column:
        """A column with one of these roles; remembered for the evidence."""
        column = self.pick(table.having(*roles))
        self.used.append(column)
        return column

    def category(self, table: Table) -> tuple[Column, str]:
        """A categorical column and one of its values."""
        column = self.column(table, Role.CATEGORY)
        return column, self.pick(column.values)

    def number(self, table: Table) -> Column:
        """A numeric column."""
        return self.column(table, Role.NUMBER)

    def threshold(self, table: Table, column: Column) -> int:
        """A number near a quantile between 0.2 and 0.8 of the column, so that both sides have rows."""
        name = quoted(column.name)
        query = f"SELECT {name} FROM {quoted(table.name)} WHERE {name} IS NOT NULL ORDER BY 1"
        values = [row[0] for row in self.connection.execute(query)]
        return values[int(len(values) * self.rng.uniform(0.2, 0.8))] + self.rng.randint(-2, 2)

    def comparison(self) -> tuple[str, str]:
        """Words and operator of a one-sided comparison."""
        if self.rng.random() < 0.5:
            return self.pick(("above", "over", "more than")), ">"
        return self.pick(("below", "under", "less than")), "<"

    def condition(self, table: Table, *, without: Column | None = None) -> tuple[str, str]:
        """A condition on a category or a number: the words (` with sex F`) and the SQL (`sx = 'F'`)."""
        columns = [c for c in table.having(Role.CATEGORY, Role.NUMBER) if c is not without]
        column = self.pick(columns)
        self.used.append(column)
        if column.role is Role.CATEGORY:
            value = self.pick(column.values)
            return f" with {column.phrase} {value}", f"{quoted(column.name)} = '{value}'"
        words, operator = self.comparison()
        bound = self.threshold(table, column)
        return f" with {column.phrase} {words} {bound}", f"{quoted(column.name)} {operator} {bound}"

    def ask(self) -> str:
        """How a listing question opens."""
        return self.pick(("List the", "Show the", "Give the", "What are the"))

    def evidence(self) -> str:
        """BIRD-style evidence for the cryptic columns that were used, at most two of them."""
        cryptic = {c.name: c.phrase for c in self.used if c.is_cryptic and not c.name.replace("_", "a").isalnum()}
        return "; ".join(f"{phrase} refers to `{name}`" for name, phrase in list(cryptic.items())[:2])
