"""The rewriting of the test suite, against recorded outputs of the official code's tokenizer (sqlparse 0.5.3)."""

import json
import time
from pathlib import Path

import pytest

from verl_sql.database.comparators.suite_text import order_matters, remove_distinct, suite_sql

CASES = [
    json.loads(line)
    for line in Path(__file__).with_name("distinct_cases.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case["sql"])[:60])
def test_distinct_goes_where_the_official_tokenizer_says(case: dict[str, str]) -> None:
    assert remove_distinct(case["sql"]).rstrip() == case["without"].rstrip()


def test_every_other_character_stays() -> None:
    sql = "SELECT DISTINCT  a /* x */\n,'DISTINCT' FROM t -- DISTINCT\r\n WHERE b='é\ud800'"
    assert remove_distinct(sql) == sql.replace("SELECT DISTINCT", "SELECT ")
    assert remove_distinct("SELECT a") == "SELECT a"


def test_operators_are_joined_even_in_strings() -> None:
    assert suite_sql("SELECT '> =' WHERE a < = 1 AND b ! = 2") == "SELECT '>=' WHERE a <= 1 AND b != 2"


def test_distinct_can_be_kept() -> None:
    assert suite_sql("SELECT DISTINCT a > = 1", keep_distinct=True) == "SELECT DISTINCT a >= 1"
    assert suite_sql("SELECT DISTINCT a > = 1") == "SELECT  a >= 1"


def test_the_current_year_is_fixed() -> None:
    assert suite_sql("SELECT year ( CurDate( ) ) - 1") == "SELECT 2020- 1"


@pytest.mark.parametrize(
    ("sql", "matters"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("SELECT a FROM (SELECT a FROM t Order By a)", True),
        ("SELECT 'order by'", True),
        ("SELECT a FROM t ORDER  BY a", False),
        ("SELECT a FROM t ORDER\nBY a", False),
        ("SELECT ';' FROM t ORDER BY a", True),
        ("SELECT a FROM t; SELECT b ORDER BY c", False),
        ("SELECT a FROM t; -- order by", True),
        ("SELECT a FROM t;\n-- order by", False),
        ("SELECT a FROM t ORDER BY a;", True),
        ("SELECT a FROM t", False),
    ],
)
def test_order_matters_as_the_official_code_looks(sql: str, matters: bool) -> None:
    assert order_matters(sql) is matters


@pytest.mark.parametrize(
    "hostile",
    [
        "/*" * 200_000,
        "'" + "''" * 200_000,
        "\\'" * 200_000,
        '"' + "a" * 400_000,
        "[" * 400_000,
        "`" + "``" * 200_000,
        "--\r" * 130_000,
        "+" * 400_000,
        "$" * 400_000,
        "DISTINCT" * 50_000,
    ],
    ids=lambda text: text[:4],
)
def test_hostile_text_is_rewritten_in_linear_time(hostile: str) -> None:
    start = time.process_time()
    assert len(remove_distinct(f"SELECT DISTINCT {hostile}")) <= len(hostile) + 16
    assert time.process_time() - start < 2.0
