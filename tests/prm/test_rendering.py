"""The one rendering: hand-written texts, hostile texts, results of every kind."""

from pathlib import Path

import pytest

from verl_sql.database.execution import Execution, Status
from verl_sql.database.executor import Executor
from verl_sql.prm.rendering import STEP_TAG, prompt_text, render_chain, render_result
from verl_sql.prm.stepping import aexecute_steps, execute_chains, execute_steps
from verl_sql.sqltext.chain import split_chain

CHAIN = """WITH old AS (SELECT name, age FROM player WHERE age > 20),
 `odd one` AS (SELECT nme FROM old), three AS (SELECT age / 7.0, NULL, x'00ff', 'it''s' FROM old LIMIT 1)
SELECT count(*) FROM old"""

INF = float("inf")
WIDE = "1 row: a | b | c | d | e | f | g | h | … 2 more\n0 | 1 | 2 | 3 | 4 | 5 | 6 | 7"


def test_a_chain_as_the_model_reads_it(executor: Executor, league: Path) -> None:
    chain = split_chain(CHAIN)
    text = render_chain("schema\nquestion?", chain, execute_steps(executor, league, chain))
    assert text.n_steps == 3
    assert text.text == (
        "schema\nquestion?\n"
        "old AS (SELECT name, age FROM player WHERE age > 20)\n"
        "3 rows: name | age\n'Bob' | 30\n'Cid' | 25\n'Dan' | 30<|step|>\n"
        "`odd one` AS (SELECT nme FROM old)\n"
        "error: no such column: nme<|step|>\n"
        "three AS (SELECT age / 7.0, NULL, x'00ff', 'it''s' FROM old LIMIT 1)\n"
        "1 row: age / 7.0 | NULL | x'00ff' | 'it''s'\n4.28571 | NULL | X'00ff' | 'it''s'<|step|>\n"
    )


def test_with_the_final_query(executor: Executor, league: Path) -> None:
    chain = split_chain("WITH a AS (SELECT 1 AS n) SELECT n + 1 AS m FROM a")
    text = render_chain("q", chain, execute_steps(executor, league, chain, score_final=True), score_final=True)
    assert text.text == (
        "q\na AS (SELECT 1 AS n)\n1 row: n\n1<|step|>\nSELECT n + 1 AS m FROM a\n1 row: m\n2<|step|>\n"
    )
    assert text.n_steps == 2


@pytest.mark.parametrize("sql", ["SELECT 1", "WITH a AS (SELECT 1) SELECT * FROM a", "WITH a AS (SELECT 1), b AS (SEL"])
@pytest.mark.parametrize("final", [False, True])
def test_as_many_segments_as_results(executor: Executor, league: Path, sql: str, final: bool) -> None:
    chain = split_chain(sql)
    results = execute_steps(executor, league, chain, score_final=final)
    text = render_chain("q", chain, results, score_final=final)
    assert text.text.count(STEP_TAG) == text.n_steps == len(results)
    with pytest.raises(ValueError, match="need as many results"):
        render_chain("q", chain, [*results, results[0]], score_final=final)


def test_only_our_tags_are_tags(executor: Executor, league: Path) -> None:
    sql = f"WITH \"{STEP_TAG}\" AS (SELECT '{STEP_TAG}' AS \"{STEP_TAG}\", 'a|{STEP_TAG}') SELECT 1"
    chain = split_chain(sql)
    text = render_chain(f"{STEP_TAG}?", chain, execute_steps(executor, league, chain)).text
    assert text.count(STEP_TAG) == 1
    assert text.endswith(f"{STEP_TAG}\n")


@pytest.mark.parametrize(
    ("execution", "text"),
    [
        (Execution(Status.OK, ("a",), (), 0), "0 rows: a"),
        (Execution(Status.OK, ("a",), ((None,),), 1), "1 row: a\nNULL"),
        (Execution(Status.OK, ("a",), ((0.1 + 0.2,), (1e300,), (INF,), (2.0,)), 9), "9 rows: a\n0.3\n1e+300\ninf"),
        (Execution(Status.OK, ("a",), (("x" * 99,),), 1), f"1 row: a\n'{'x' * 24}…' (99 characters)"),
        (Execution(Status.OK, ("a",), (("two\nlines\udc80",),), 1), "1 row: a\n'two\\nlines\\udc80'"),
        (Execution(Status.OK, tuple("abcdefghij"), (tuple(range(10)),), 1), WIDE),
        (Execution(Status.TIMEOUT, message="ran past its deadline of 30 s"), "timeout"),
        (Execution(Status.TOO_LARGE, message="more than 1000000 rows"), "too_large"),
        (Execution(Status.FORBIDDEN, message="not allowed: ATTACH"), "forbidden: not allowed: ATTACH"),
        (Execution(Status.ERROR, message="no such table:\n x"), "error: no such table:\\n x"),
        (Execution(Status.ERROR, message="cannot open /data/bird/x.sqlite now"), "error: cannot open … now"),
        (Execution(Status.ERROR, message='near "a/b": syntax error'), 'error: near "a/b": syntax error'),
        (Execution(Status.ERROR, message="/srv/x: locked", data_fault=True), "error: the database cannot be read"),
    ],
)  # fmt: skip
def test_results(execution: Execution, text: str) -> None:
    assert render_result(execution) == text


def test_the_prompt_is_what_the_user_said() -> None:
    chat = [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
    ]
    assert prompt_text(chat) == "a\nb"


async def test_one_by_one_in_bulk_and_awaited_are_the_same(executor: Executor, league: Path) -> None:
    chains = [split_chain(CHAIN), split_chain("SELECT 1"), split_chain(CHAIN), split_chain("WITH a AS (SELECT 2) SE")]
    bulk = execute_chains(executor, [(league, chain) for chain in chains])
    shown = [[render_result(result) for result in results] for results in bulk]
    assert [len(results) for results in bulk] == [3, 1, 3, 1]
    for chain, found in zip(chains, shown, strict=True):
        assert [render_result(r) for r in execute_steps(executor, league, chain)] == found
        assert [render_result(r) for r in await aexecute_steps(executor, league, chain)] == found
