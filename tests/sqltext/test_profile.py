"""Diagnostic trees: what is the same structure, and where two of them part."""

import pytest

from verl_sql.sqltext.items import SchemaNames
from verl_sql.sqltext.profile import differences, profile_of, structural_alignment

NAMES = SchemaNames({"team": frozenset({"id", "name", "city"}), "player": frozenset({"id", "name", "age", "team_id"})})


def aligned(pred: str, gold: str) -> float:
    return structural_alignment(profile_of(pred, NAMES), profile_of(gold, NAMES))


def parts(pred: str, gold: str) -> list[tuple[str, str, tuple[str, ...], tuple[str, ...]]]:
    found = differences(profile_of(pred, NAMES), profile_of(gold, NAMES))
    return [(d.path, d.clause, d.missing, d.extra) for d in found]


@pytest.mark.parametrize(
    ("pred", "gold"),
    [
        ("SELECT T1.name FROM team AS T1", "select NAME from team"),
        ("SELECT name FROM team WHERE 5 < id AND city = 'a'", 'SELECT name FROM team WHERE (city = "b" AND id > 7)'),
        ("SELECT city FROM team t JOIN player p ON t.id = p.team_id",
         "SELECT t.city FROM team t INNER JOIN player p ON p.team_id = t.id"),
        ("SELECT city, count(*) AS n FROM team GROUP BY city ORDER BY n DESC, 1",
         "SELECT city, count(*) FROM team GROUP BY city ORDER BY count(*) DESC, city"),
        ("SELECT name FROM player WHERE age > (SELECT avg(age) FROM player)",
         "SELECT name FROM player AS p WHERE p.age > (SELECT avg(q.age) FROM player q)"),
    ],
)  # fmt: skip
def test_same_structure(pred: str, gold: str):
    assert aligned(pred, gold) == 1.0
    assert parts(pred, gold) == []


@pytest.mark.parametrize(
    ("pred", "gold", "value", "where"),
    [
        # select 0, sources 1
        ("SELECT city FROM team", "SELECT name FROM team", 1 / 2, [("", "select", ("team.name",), ("team.city",))]),
        # select 1, sources 1, where missing: both clauses exist somewhere, and that alone is worth nothing
        ("SELECT name FROM team", "SELECT name FROM team WHERE id = 1", 2 / 3,
         [("", "where", ("eq(?,team.id)",), ())]),
        # one of two predicates: F1 2·1/(1 + 2)
        ("SELECT name FROM team WHERE id = 1", "SELECT name FROM team WHERE id = 1 AND city = 'a'", (2 + 2 / 3) / 3,
         [("", "where", ("eq(?,team.city)",), ())]),
        ("SELECT DISTINCT name FROM team", "SELECT name FROM team", 2 / 3, [("", "distinct", (), ("distinct",))]),
        ("SELECT name FROM team ORDER BY id", "SELECT name FROM team ORDER BY id DESC", 2 / 3,
         [("", "order by", ("0:team.id desc",), ("0:team.id asc",))]),
        ("SELECT name FROM team LIMIT 1", "SELECT name FROM team LIMIT 3", 2 / 3,
         [("", "limit", ("limit 3",), ("limit 1",))]),
        # the operator differs: its branch is worth 0
        ("SELECT id FROM team UNION SELECT id FROM player", "SELECT id FROM team EXCEPT SELECT id FROM player", 2 / 3,
         [("", "set operations", ("except",), ("union",))]),
        # a subquery instead of a number: where differs, and the gold has no nested query
        ("SELECT id FROM team WHERE id > (SELECT 1)", "SELECT id FROM team WHERE id > 1", 2 / 4,
         [("", "where", ("lt(?,team.id)",), ("lt(subquery,team.id)",)), ("", "nested queries", (), ("where",))]),
        # inside the CTE: select 0, sources 1
        ("WITH a AS (SELECT city FROM team) SELECT * FROM a", "WITH a AS (SELECT name FROM team) SELECT * FROM a",
         (1 + 1 + 1 / 2) / 3, [("/with[1]", "select", ("team.name",), ("team.city",))]),
    ],
)  # fmt: skip
def test_where_they_part(pred: str, gold: str, value: float, where: list):
    assert aligned(pred, gold) == pytest.approx(value)
    assert aligned(gold, pred) == pytest.approx(value)
    assert parts(pred, gold) == where


def test_no_literal_of_the_gold_is_in_a_difference():
    found = parts("SELECT 1", "SELECT name FROM team WHERE city = 'secret' AND id = 4711 AND name LIKE \"hidden%\"")
    assert "secret" not in str(found)
    assert "4711" not in str(found)
    assert "hidden" not in str(found)


def test_without_a_tree_the_clauses_hold_tokens():
    profile = profile_of("SELECT name FROM team WHERE (", NAMES)
    assert not profile.parsed
    assert profile.clauses["from"] == ("team",)


@pytest.mark.parametrize(
    ("pred", "gold"),
    [
        # what a CTE is called, and whether its columns are qualified, is no structure
        ("WITH a AS (SELECT id FROM team) SELECT a.id FROM a", "WITH b AS (SELECT id FROM team) SELECT id FROM b"),
        ("WITH a AS (SELECT 1 AS x), b AS (SELECT x FROM a) SELECT x FROM b",
         "WITH s1 AS (SELECT 1 AS x), s2 AS (SELECT s1.x FROM s1) SELECT s2.x FROM s2"),
        # a quoted column that a CTE hands on is a column, a quoted word that no table has is a literal
        ('WITH a AS (SELECT "name" FROM team) SELECT "name" FROM a WHERE name = "x"',
         "WITH a AS (SELECT name FROM team) SELECT name FROM a WHERE name = 'y'"),
    ],
)  # fmt: skip
def test_steps_are_numbered_not_named(pred: str, gold: str):
    assert parts(pred, gold) == []


def test_a_step_is_no_table_and_its_name_ends_with_its_query():
    assert parts("WITH a AS (SELECT name FROM team) SELECT name FROM team",
                 "WITH a AS (SELECT name FROM team) SELECT name FROM a") == [
        ("", "select", (".name",), ("team.name",)), ("", "sources", ("step 1",), ("team",)),
    ]  # fmt: skip
    inner = "SELECT id FROM (WITH player AS (SELECT 1 AS id) SELECT id FROM player), player"
    assert profile_of(inner, NAMES).clauses["sources"] == ("player", "subquery")


def test_a_name_cannot_pass_for_structure():
    names = SchemaNames({"frpm": frozenset({"count (k-12), all", "a.b"})})
    assert profile_of('SELECT max("Count (K-12), all"), "a.b" FROM frpm', names).outputs == (
        "max(frpm.count%20%28k-12%29%2c%20all)", "frpm.a%2eb",
    )  # fmt: skip
