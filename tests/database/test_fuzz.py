"""Ten thousand random and mutated queries: no crash, no hang, no leak, the file untouched, the answers SQLite's own."""

import json
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from verl_sql.database.execution import Status
from verl_sql.database.executor import Executor

TOKENS = (Path(__file__).parent / "cases" / "tokens.txt").read_text(encoding="utf-8").split()
SEEDS = [
    "SELECT name, count(*) FROM item GROUP BY name HAVING count(*) > 1 ORDER BY 2 DESC LIMIT 3",
    "SELECT * FROM item a JOIN item b ON a.id = b.id + 1 WHERE a.price BETWEEN 1 AND 2 OR b.name LIKE '%n%'",
    "WITH t AS (SELECT id, price FROM item WHERE price IS NOT NULL) SELECT avg(price) FROM t",
    "SELECT CASE WHEN price > 1 THEN 'dear' ELSE 'cheap' END, `Home Town` FROM item EXCEPT SELECT 1, 2",
    'SELECT name, row_number() OVER (PARTITION BY "Home Town" ORDER BY price) FROM item',
    "SELECT (SELECT max(price) FROM item b WHERE b.name = a.name) FROM item a WHERE id IN (1, 2, 3)",
]
STATED = set(Status)


def mutated(sql: str, rng: random.Random) -> str:
    """A query with a few tokens deleted, doubled, swapped, replaced, or cut in the middle of a character run."""
    parts = sql.split(" ")
    for _ in range(rng.randint(0, 2)):
        i, j = rng.randrange(len(parts)), rng.randrange(len(parts))
        kind = rng.randrange(6)
        if kind == 0:
            parts[i] = rng.choice(TOKENS)
        elif kind == 1:
            parts.insert(i, rng.choice(TOKENS))
        elif kind == 2:
            parts[i], parts[j] = parts[j], parts[i]
        elif kind == 3:
            parts[i] *= 2
        elif kind == 4 and len(parts) > 2:
            del parts[i]
        else:
            parts[i] = parts[i][: rng.randrange(len(parts[i]) + 1)] + chr(rng.randrange(1, 0x2FF))
    return " ".join(parts)


def soup(rng: random.Random) -> str:
    """A query of random tokens."""
    return "SELECT " * rng.randint(0, 1) + " ".join(rng.choices(TOKENS, k=rng.randint(1, 25)))


@pytest.fixture(scope="module")
def fuzzed(shop: Path) -> Iterator[Executor]:
    """A pool of its own; after the module its file is as before and its processes are gone."""
    before = shop.read_bytes()
    with Executor(2, timeout=2.0) as executor:
        yield executor
        assert executor.execute(shop, "SELECT count(*) FROM item", keep_rows=1, timeout=20).rows == ((4,),)
    assert shop.read_bytes() == before
    assert [p.name for p in shop.parent.iterdir()] == [shop.name]


def test_mutated_and_random_queries(fuzzed: Executor, shop: Path) -> None:
    rng = random.Random(20)
    sqls = [mutated(rng.choice(SEEDS), rng) for _ in range(5_000)] + [soup(rng) for _ in range(2_000)]
    executions = fuzzed.execute_many([(shop, sql) for sql in sqls], keep_rows=1_000)
    assert {execution.status for execution in executions} <= STATED
    assert sum(execution.ok for execution in executions) > 1_000
    reference = sqlite3.connect(f"file:{shop}?mode=ro", uri=True)
    for sql, execution in zip(sqls, executions, strict=True):
        if execution.ok and "random" not in sql and "date" not in sql and "now" not in sql:
            assert execution.rows == tuple(reference.execute(sql).fetchmany(1_000)), sql
    reference.close()


def test_mutated_predictions(fuzzed: Executor, shared_dir: Path) -> None:
    rng = random.Random(21)
    lines = (shared_dir / "parity" / "pairs.jsonl").read_text(encoding="utf-8").splitlines()
    spider = [pair for pair in map(json.loads, rng.sample(lines, 4_000)) if pair["bench"] == "spider_dev"][:3_000]
    root = shared_dir / "data" / "spider_dev" / "database"
    requests = [(root / p["db_id"] / f"{p['db_id']}.sqlite", mutated(p["pred"] or "SELECT", rng)) for p in spider]
    before = {path: path.read_bytes() for path, _ in requests}
    executions = fuzzed.execute_many(requests)
    assert {execution.status for execution in executions} <= STATED
    assert not any(execution.data_fault for execution in executions)
    assert all(path.read_bytes() == content for path, content in before.items())


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(sql=st.one_of(st.text(max_size=60), st.lists(st.sampled_from(TOKENS), max_size=12).map(" ".join)))
def test_any_text_has_a_status(fuzzed: Executor, shop: Path, sql: str) -> None:
    comparison = fuzzed.compare(shop, "SELECT a FROM empty_t", sql)
    assert comparison.pred.status in STATED
    assert comparison.values["bird_set"] == float(comparison.pred.is_empty)
