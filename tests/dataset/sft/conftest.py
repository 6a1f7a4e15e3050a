"""Four prepared questions about the league database, one of them with a gold that fails."""

from pathlib import Path

import pytest

from verl_sql.database.executor import Executor
from verl_sql.dataset.example import Example
from verl_sql.dataset.parquet import RL_SCHEMA, rl_row, write_rows

GOLDS = [
    "SELECT name FROM team WHERE city = 'Rome'",
    "SELECT COUNT(*) FROM player",
    "SELECT nosuch(name) FROM team",
    "SELECT name FROM player WHERE age > 25",
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A prepared parquet of the questions."""
    examples = [
        Example(
            "own", "train", f"q{i}", "league", f"Question {i}?", "", gold,
            gold_chain="WITH a AS (SELECT 1) SELECT 1" if i == 0 else "",
            details={"more_chains": ["WITH b AS (SELECT 2) SELECT 1"]} if i == 0 else {},
        )
        for i, gold in enumerate(GOLDS)
    ]  # fmt: skip
    rows = [
        rl_row(e, [{"role": "system", "content": "S"}, {"role": "user", "content": e.question}], i)
        for i, e in enumerate(examples)
    ]
    write_rows(tmp_path / "train.parquet", rows, RL_SCHEMA)
    return tmp_path / "train.parquet"


@pytest.fixture(scope="session")
def executor():
    with Executor(workers=1, timeout=10.0) as running:
        yield running
