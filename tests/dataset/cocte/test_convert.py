"""Conversion by rule: cases by hand, then every Spider dev and superhero gold."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlglot import exp

from verl_sql.database.executor import Executor, Pair
from verl_sql.database.introspect import read_schema
from verl_sql.dataset.cocte.convert import candidates
from verl_sql.dataset.cocte.reasons import ChainOutcome, Unconvertible
from verl_sql.dataset.cocte.verify import COMPARATORS, Conversion, convert_all
from verl_sql.sqltext.chain import prefix_sql, split_chain
from verl_sql.sqltext.parse import parse_sql

CASES = [json.loads(line) for line in (Path(__file__).parent / "cases.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def converted(shop: Path, executor: Executor) -> dict[str, Conversion]:
    results = convert_all([(shop, case["sql"]) for case in CASES], executor)
    return {case["name"]: result for case, result in zip(CASES, results, strict=True)}


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_case(case: dict, converted: dict[str, Conversion]) -> None:
    result = converted[case["name"]]
    chain = split_chain(result.chain)
    assert [step.name or "itself" for step in chain.steps] == case["steps"]
    assert " ".join(chain.final_sql.split()) == case["final"]
    assert (result.stages, result.depth) == (case["stages"], "full")
    assert result.steps >= min(result.stages, 2)


def test_a_chain_as_text(converted: dict[str, Conversion]) -> None:
    assert converted["membership of a filtered query"].chain == (
        "WITH order_with_total_over_20 AS (SELECT customer_id FROM `order` WHERE total > 20),\n"
        "customer_in_order_with_total_over_20 AS "
        "(SELECT name FROM customer WHERE id IN (SELECT customer_id FROM order_with_total_over_20))\n"
        "SELECT name FROM customer_in_order_with_total_over_20"
    )


def test_a_tie_among_groups_is_broken_as_sqlite_does(shop: Path, executor: Executor) -> None:
    gold = "SELECT quantity FROM item GROUP BY quantity ORDER BY COUNT(*) DESC, 1 LIMIT 1"
    (result,) = convert_all([(shop, gold)], executor)
    assert result.outcome is ChainOutcome.CHAIN
    tied = "SELECT country FROM customer GROUP BY country ORDER BY MAX(1) DESC LIMIT 1"
    (result,) = convert_all([(shop, tied)], executor)
    assert "DESC, country DESC LIMIT 1" in result.chain


@pytest.mark.parametrize(
    ("sql", "outcome"),
    [
        ("SELECT FROM WHERE", ChainOutcome.UNPARSED),
        ("SELECT name FROM nowhere", ChainOutcome.UNRESOLVED),
        ("SELECT nothing FROM customer", ChainOutcome.UNRESOLVED),
        ("WITH RECURSIVE n(i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n", "unsupported"),
        ("SELECT value FROM json_each('[1]')", ChainOutcome.UNSUPPORTED),
        ("DELETE FROM customer", ChainOutcome.UNSUPPORTED),
    ],
)
def test_what_the_rules_leave_alone(sql: str, outcome: str, shop: Path) -> None:
    with pytest.raises(Unconvertible) as caught:
        list(candidates(sql, read_schema(shop)))
    assert caught.value.outcome == outcome


def test_failures_are_told_apart(shop: Path, executor: Executor) -> None:
    broken = [(shop, "SELECT nosuch(name) FROM customer"), (shop.with_name("gone.sqlite"), "SELECT 1")]
    results = list(convert_all(broken, executor))
    assert [r.outcome for r in results] == [ChainOutcome.GOLD_FAILS, ChainOutcome.NO_DATABASE]
    assert "nosuch" in results[0].detail


def test_a_result_that_changes_by_itself_gives_no_chain(shop: Path, executor: Executor) -> None:
    (result,) = convert_all([(shop, "SELECT name, random() FROM customer WHERE id < 4 ORDER BY 1")], executor)
    assert (result.outcome, result.chain) == (ChainOutcome.DIFFERS, "")


def passes_through(body: str) -> bool:
    """Whether a step only picks columns of one table or step."""
    tree = parse_sql(body).tree
    work = ("where", "group", "having", "distinct", "order", "limit", "joins")
    if not isinstance(tree, exp.Select) or any(tree.args.get(part) for part in work):
        return False
    return all(isinstance(item.unalias(), exp.Column | exp.Star) for item in tree.expressions)


@pytest.fixture(scope="module", params=["spider", "superhero"])
def golds(request: pytest.FixtureRequest) -> list:
    return request.getfixturevalue(request.param)


def test_all_golds_convert(golds: list) -> None:
    """Acceptance: at least 95 %; measured: all 972 and all 129, at full depth."""
    assert len(golds) in (972, 129)
    assert sum(c.result.converted for c in golds) == len(golds)
    assert {c.result.depth for c in golds} == {"full"}
    assert all(c.result.steps >= 2 for c in golds if c.result.stages > 1)


def test_single_stage_queries_are_left_as_they_are(golds: list) -> None:
    for one in golds:
        if one.result.outcome is ChainOutcome.SINGLE:
            assert one.result.stages <= 1
            assert one.gold.strip().startswith(one.result.chain)


def test_results_are_equal_and_prefixes_run(golds: list, executor: Executor) -> None:
    """Independently of the conversion's own check."""
    pairs = [Pair(c.database, c.gold, c.result.chain) for c in golds]
    for found in executor.compare_many(pairs, comparators=COMPARATORS):
        assert set(found.values.values()) == {1.0}
    requests = [(c.database, sql) for c in golds for sql in prefixes(c.result.chain)]
    assert all(found.ok for found in executor.execute_many(requests))


def prefixes(chain: str) -> Iterator[str]:
    split = split_chain(chain)
    return (prefix_sql(split, step.index) for step in split.steps)


def test_chains_come_apart_into_steps_that_work(golds: list) -> None:
    for one in golds:
        chain = split_chain(one.result.chain)
        assert chain.complete
        if not chain.has_ctes:
            continue
        names = [step.name for step in chain.steps]
        assert len(set(names)) == len(names) == one.result.steps
        assert all(re.fullmatch(r"[a-z][a-z0-9_]{0,49}", name) for name in names)
        assert not any(passes_through(step.sql) for step in chain.steps)
        assert '"' not in re.sub(r"'(?:[^']|'')*'", "", one.result.chain)


def test_order_survives(golds: list) -> None:
    for one in golds:
        tree = parse_sql(one.gold).tree
        if tree.args.get("order") and not tree.args.get("limit"):
            assert "ORDER BY" in (split_chain(one.result.chain).final_sql or one.result.chain).upper()
