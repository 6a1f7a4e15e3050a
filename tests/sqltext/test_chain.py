"""The step splitter: hand-written chains, truncations, and what must hold for any text."""

import json
import sqlite3
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_sql.sqltext.chain import count_steps, prefix_sql, split_chain

CHAIN = """WITH young AS (
  SELECT id, ')' AS "a(b" FROM people -- not ) yet
  WHERE age < 30
), "odd name"(x) AS MATERIALIZED (SELECT id FROM young), [third] AS NOT MATERIALIZED (
  WITH z AS (SELECT 1) SELECT * FROM z)
SELECT count(*) FROM young /* done; */;"""
PIECES = [
    "WITH ",
    "RECURSIVE ",
    "a",
    " AS ",
    "(",
    ")",
    ",",
    "SELECT 1",
    ";",
    "'",
    '"',
    "`",
    "[",
    "]",
    "--",
    "\n",
    "/*",
    "*/",
    " ",
]


def test_names_bodies_and_final_query() -> None:
    chain = split_chain(CHAIN)
    assert [step.name for step in chain.steps] == ["young", "odd name", "third"]
    assert chain.steps[1].sql == "SELECT id FROM young"
    assert chain.steps[2].sql == "WITH z AS (SELECT 1) SELECT * FROM z"
    assert chain.final_sql == "SELECT count(*) FROM young"
    assert chain.complete
    assert not chain.recursive


def test_spans_cover_the_whole_item() -> None:
    chain = split_chain(CHAIN)
    second = chain.steps[1]
    assert CHAIN[second.start : second.end] == '"odd name"(x) AS MATERIALIZED (SELECT id FROM young)'
    assert CHAIN[chain.final_start : chain.final_end] == chain.final_sql


def test_prefixes_run_step_by_step() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript("CREATE TABLE people (id, age); INSERT INTO people VALUES (1, 20), (2, 40), (3, 25)")
    chain = split_chain(CHAIN)
    results = [connection.execute(prefix_sql(chain, index)).fetchall() for index in range(3)]
    assert results == [[(1, ")"), (3, ")")], [(1,), (3,)], [(1,)]]


def test_recursive_prefix_keeps_the_keyword() -> None:
    chain = split_chain(
        "with recursive n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT sum(i) FROM n"
    )
    assert chain.recursive
    assert sqlite3.connect(":memory:").execute(prefix_sql(chain, 0)).fetchall() == [(1,), (2,), (3,), (4,)]


@pytest.mark.parametrize(
    "sql", ["SELECT 1", "VALUES (1)", "-- why\nSELECT 1", "SELECT a FROM (WITH b AS (SELECT 1 AS a) SELECT a FROM b)"]
)
def test_query_without_cte_is_one_step_itself(sql: str) -> None:
    chain = split_chain(sql + " ;")
    assert [(step.name, step.sql) for step in chain.steps] == [("", sql.removeprefix("-- why\n"))]
    assert (chain.final_sql, chain.complete, chain.has_ctes) == ("", True, False)
    assert prefix_sql(chain, 0) == chain.steps[0].sql


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("", []),
        ("WITH", []),
        ("WITH a", []),
        ("WITH a AS (SELECT 1", []),
        ("WITH a AS (SELECT 'x) SELECT 1", []),
        ("WITH a AS (SELECT 1)", ["a"]),
        ("WITH a AS (SELECT 1),", ["a"]),
        ("WITH a AS (SELECT 1), b AS (SELECT (2)", ["a"]),
        ("WITH a AS (SELECT 1) SELECT (1", ["a"]),
        ("WITH a AS (SELECT 1) SELECT 'x", ["a"]),
        ("WITH a AS (SELECT 1) b AS (SELECT 2) SELECT 1", ["a"]),
        ("WITH a AS (SELECT 1), SELECT 1", ["a"]),
    ],
)
def test_broken_chains_keep_their_whole_steps(sql: str, names: list[str]) -> None:
    chain = split_chain(sql)
    assert [step.name for step in chain.steps] == names
    assert not chain.complete


def test_index_out_of_range() -> None:
    with pytest.raises(IndexError):
        prefix_sql(split_chain("SELECT 1"), 1)


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=40).map("".join)))
def test_any_text_splits_into_ordered_spans(sql: str) -> None:
    chain = split_chain(sql)
    edges = [edge for step in chain.steps for edge in (step.start, step.end)] + [chain.final_start, chain.final_end]
    assert edges == sorted(edges)
    assert sql[chain.final_start : chain.final_end] == chain.final_sql
    assert all(step.sql in sql[step.start : step.end] for step in chain.steps)


@given(
    st.lists(
        st.sampled_from(["SELECT 1", "SELECT ')'", 'SELECT "("', "SELECT 1 -- )\n", "VALUES ((2))"]),
        min_size=1,
        max_size=6,
    )
)
def test_built_chains_round_trip(bodies: list[str]) -> None:
    text = "WITH " + ",\n".join(f"c{i} AS ({body})" for i, body in enumerate(bodies)) + " SELECT * FROM c0"
    chain = split_chain(text)
    assert [step.sql for step in chain.steps] == [body.strip() for body in bodies]
    assert all(split_chain(prefix_sql(chain, i)).steps == chain.steps[: i + 1] for i in range(len(bodies)))


def test_every_real_gold_is_whole(shared_dir: Path) -> None:
    golds = [row["query"] for row in json.loads((shared_dir / "data/spider_dev/dev.json").read_text())]
    golds += [row["SQL"] for row in json.loads((shared_dir / "data/bird/dev.json").read_text())]
    assert [gold for gold in golds if not split_chain(gold).complete] == []


@given(st.lists(st.sampled_from([*PIECES, " -- c\n", "/* ; */"]), max_size=12).map("".join))
def test_counting_steps_is_splitting(text: str) -> None:
    assert count_steps(text) == len(split_chain(text).steps)
