"""What a diagnosis says of each kind of difference, and that its words are a closed set."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from verl_sql.sqltext.diagnosis import PLACES, Clause, Finding, diagnose
from verl_sql.sqltext.diagnosis_text import HEAD, diagnosis_text, schema_words, vocabulary
from verl_sql.sqltext.items import SchemaNames
from verl_sql.sqltext.shape_pairs import Kind

NAMES = SchemaNames({
    "team": frozenset({"id", "name", "city"}), "player": frozenset({"id", "name", "age", "team_id"}),
})  # fmt: skip


def lines(pred: str, gold: str) -> list[str]:
    head, *found = diagnosis_text(diagnose(pred, gold, NAMES)).splitlines()
    assert head == f"{HEAD}:"
    return [line.removeprefix("- ") for line in found]


@pytest.mark.parametrize(
    ("pred", "gold", "said"),
    [
        ("SELECT city FROM team", "SELECT name FROM team", ["SELECT_list: one_column_wrong"]),
        ("SELECT name FROM team", "SELECT id, name, city FROM team", ["SELECT_list: two_columns_missing"]),
        ("SELECT id, name FROM team", "SELECT name, id FROM team", ["SELECT_list: column_order_wrong"]),
        ("SELECT max(age) FROM player", "SELECT min(age) FROM player", ["SELECT_list: aggregate_function_wrong"]),
        ("SELECT max(age) FROM player", "SELECT max(id) FROM player", ["SELECT_list: aggregate_argument_wrong"]),
        ("SELECT age FROM player", "SELECT avg(age) FROM player", ["SELECT_list: aggregate_missing"]),
        ("SELECT count(id) FROM team", "SELECT name FROM team", ["SELECT_list: aggregate_not_needed"]),
        # the aggregate is paired with its own argument, not with what stands first
        ("SELECT name, age FROM player", "SELECT max(age), city FROM player",
         ["SELECT_list: one_column_wrong, aggregate_missing"]),
        ("SELECT name FROM team", "SELECT DISTINCT name FROM team", ["DISTINCT_keyword: clause_missing"]),
        ("SELECT name FROM team", "SELECT name FROM player", ["FROM_tables: one_table_wrong"]),
        ("SELECT city FROM team", "SELECT city FROM team JOIN player ON team.id = player.team_id",
         ["FROM_tables: one_table_missing", "JOIN_list: one_join_missing"]),
        ("SELECT city FROM team JOIN player ON team.id = player.id",
         "SELECT city FROM team JOIN player ON team.id = player.team_id", ["JOIN_list: join_condition_wrong"]),
        ("SELECT city FROM team JOIN player ON team.id = player.team_id",
         "SELECT city FROM team LEFT JOIN player ON team.id = player.team_id", ["JOIN_list: join_kind_wrong"]),
        ("SELECT name FROM team", "SELECT name FROM team WHERE id = 1", ["WHERE_clause: clause_missing"]),
        ("SELECT name FROM team", "SELECT name FROM team WHERE id = 1 AND city = 'a'",
         ["WHERE_clause: two_predicates_missing, clause_missing"]),
        ("SELECT name FROM team WHERE id > 1", "SELECT name FROM team WHERE id < 1", ["WHERE_clause: operator_wrong"]),
        ("SELECT name FROM team WHERE id IN (1, 2)", "SELECT name FROM team WHERE id NOT IN (1, 2)",
         ["WHERE_clause: operator_wrong"]),
        ("SELECT name FROM team WHERE id = name", "SELECT name FROM team WHERE id = city",
         ["WHERE_clause: operand_wrong"]),
        ("SELECT name FROM team WHERE city = 'a'", "SELECT name FROM team WHERE city = 'b'",
         ["WHERE_clause: literal_wrong"]),
        ('SELECT name FROM team WHERE city = "a"', "SELECT name FROM team WHERE `city` = 'a' AND id = 2",
         ["WHERE_clause: one_predicate_missing"]),
        ("SELECT city FROM team GROUP BY city", "SELECT city FROM team GROUP BY name",
         ["GROUP_BY_clause: one_key_wrong"]),
        ("SELECT city FROM team GROUP BY city", "SELECT city FROM team GROUP BY city HAVING count(*) > 1",
         ["HAVING_clause: clause_missing"]),
        ("SELECT name FROM team ORDER BY id", "SELECT name FROM team ORDER BY id DESC",
         ["ORDER_BY_clause: direction_wrong"]),
        ("SELECT name FROM team ORDER BY id, city", "SELECT name FROM team ORDER BY city, id",
         ["ORDER_BY_clause: two_times_position_wrong"]),
        ("SELECT name FROM team LIMIT 1", "SELECT name FROM team LIMIT 3", ["LIMIT_clause: row_count_wrong"]),
        ("SELECT name FROM team", "SELECT name FROM team LIMIT 3", ["LIMIT_clause: clause_missing"]),
        ("SELECT id FROM team UNION SELECT id FROM player", "SELECT id FROM team EXCEPT SELECT id FROM player",
         ["set_operations: operator_wrong"]),
        ("SELECT id FROM team", "SELECT id FROM team INTERSECT SELECT id FROM player",
         ["set_operations: one_branch_missing"]),
        ("SELECT id FROM team UNION SELECT age FROM player", "SELECT id FROM team UNION SELECT id FROM player",
         ["second_branch: SELECT_list: one_column_wrong"]),
        ("SELECT id FROM team WHERE id IN (SELECT id FROM player)",
         "SELECT id FROM team WHERE id IN (SELECT team_id FROM player)",
         ["WHERE_subquery: SELECT_list: one_column_wrong"]),
        ("SELECT id FROM player WHERE age > 3", "SELECT id FROM player WHERE age > (SELECT avg(age) FROM player)",
         ["WHERE_clause: operand_wrong", "nested_queries: one_subquery_missing"]),
        # the second step goes back to the whole table
        ("WITH a AS (SELECT id, name FROM team WHERE city = 'x'), b AS (SELECT name FROM team) SELECT name FROM b",
         "WITH s AS (SELECT id, name FROM team WHERE city = 'x'), t AS (SELECT name FROM s) SELECT name FROM t",
         ["second_step: FROM_tables: one_table_wrong"]),
        ("SELECT name FROM team", "WITH a AS (SELECT name FROM team) SELECT name FROM a",
         ["FROM_tables: one_table_wrong", "WITH_steps: one_step_missing"]),
        ("SELECT name FROM team WHERE (", "SELECT name FROM team ORDER BY id",
         ["whole_query: not_understood_as_SQL", "ORDER_BY_clause: clause_missing", "WHERE_clause: clause_not_needed"]),
        ("SELECT name FROM team", "SELECT T1.name FROM team AS T1", ["whole_query: same_structure_other_result"]),
        ("SELECT 1", "SELECT (", ["whole_query: other_result"]),
    ],
)  # fmt: skip
def test_what_is_said(pred: str, gold: str, said: list[str]):
    assert lines(pred, gold) == said


def test_a_word_of_the_schema_is_never_a_word_of_the_text():
    names = SchemaNames({"order_by_clause": frozenset({"direction_wrong", "ORDER_BY_clause_"}), "t": frozenset({"id"})})
    text = diagnosis_text(diagnose("SELECT id FROM t ORDER BY id", "SELECT id FROM t ORDER BY id DESC", names),
                          schema_words(names))  # fmt: skip
    assert text == "SQL_diagnosis:\n- ORDER_BY_clause__: direction_wrong_"


def test_long_diagnoses_are_cut():
    found = [Finding((place,), Clause.SELECT, Kind.WRONG, 5) for place in PLACES]
    told = diagnosis_text(found, max_lines=2).splitlines()
    assert told[1:] == [f"- {PLACES[0]}: SELECT_list: several_columns_wrong",
                        f"- {PLACES[1]}: SELECT_list: several_columns_wrong", "- further_differences"]  # fmt: skip
    deep = Finding(("first_step", "FROM_subquery", "WHERE_subquery"), Clause.WHERE, Kind.OPERATOR)
    assert diagnosis_text([deep]).endswith("- FROM_subquery: WHERE_subquery: WHERE_clause: operator_wrong")


def test_every_word_is_compounded():
    assert all("_" in word for word in vocabulary())


@given(st.text(max_size=60), st.sampled_from(["SELECT name FROM team WHERE city = 'a'", "WITH a AS (SELECT 1) SELECT"]))
@settings(max_examples=150, deadline=None)
def test_any_prediction_gets_a_text_of_closed_words(pred: str, gold: str):
    for prediction in (pred, f"SELECT {pred} FROM team", f"SELECT name FROM team WHERE {pred}"):
        text = diagnosis_text(diagnose(prediction, gold, NAMES))
        assert set(re.findall(r"\w+", text)) <= vocabulary()
        assert text.count("\n") >= 1
