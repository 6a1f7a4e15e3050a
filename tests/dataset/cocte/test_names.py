"""Names of steps, by hand."""

import pytest
import sqlglot

from verl_sql.dataset.cocte.names import (
    filter_name,
    group_name,
    join_name,
    set_name,
    slug,
    step_name,
    top_name,
    value_name,
)


def parsed(condition: str):
    return sqlglot.parse_one(condition, dialect="sqlite")


@pytest.mark.parametrize(
    ("condition", "name"),
    [
        ("country = 'Italy'", "italy_singer"),
        ("age > 20", "singer_with_age_over_20"),
        ("20 > age", "singer_with_age_under_20"),
        ("age IS NULL", "singer_without_age"),
        ("age IS NOT NULL", "singer_with_age"),
        ("NOT name IS NULL", "singer_with_name"),
        ("name <> 'Ann'", "non_ann_singer"),
        ("born = '1990-01-01'", "singer_with_born_1990_01_01"),
        ("age BETWEEN 20 AND 30", "singer_with_age_20_to_30"),
        ("name LIKE '%ann%'", "singer_with_name_like_ann"),
        ("country IN ('Italy', 'Spain')", "italy_or_spain_singer"),
        ("age IN (1, 2, 3, 4)", "singer_with_age_among_4"),
        ("country = 'Italy' OR country = 'Spain'", "italy_or_spain_singer"),
        ("balance < -5", "singer_with_balance_under_minus_5"),
        ("name = 'İzmir'", "izmir_singer"),
        ("name = '東京'", "singer_with_name_empty"),
        ("note = 'a value far too long to be the name of a step in any chain'", "a_value_far_too_long_to_be_t_singer"),
    ],
)
def test_filters(condition: str, name: str) -> None:
    assert filter_name("singer", [parsed(condition)]) == name


def test_several_conditions_and_too_many() -> None:
    assert filter_name("t", [parsed("a = 'Red'"), parsed("b > 1")]) == "red_t_with_b_over_1"
    long = [parsed(f"column_number_{i} > 1000{i}") for i in range(2)]
    assert filter_name("singer", long) == "singer_by_column_number_0_and_column_number_1"


@pytest.mark.parametrize(
    ("item", "name"),
    [
        ("COUNT(*)", "singer_count"),
        ("COUNT(DISTINCT country)", "distinct_country_count"),
        ("COUNT(country)", "country_count"),
        ("AVG(age)", "average_age"),
        ("ROUND(AVG(age), 2)", "average_age"),
        ("MAX(age)", "highest_age"),
        ("SUM(CASE WHEN colour = 'Blue' THEN 1 ELSE 0 END)", "blue_count"),
        ("CAST(SUM(a) AS REAL) * 100 / COUNT(*)", "percentage"),
        ("strftime('%Y', born)", "year"),
        ("SUM(a) - SUM(b)", "difference"),
    ],
)
def test_values(item: str, name: str) -> None:
    assert value_name(parsed(item), "singer") == name


def test_joins_groups_tops_and_sets() -> None:
    assert join_name(["rome_team", "player"], ["team", "player"]) == "rome_team_with_player"
    assert join_name(["x" * 40, "y" * 40], ["team", "player"]) == "team_with_player"
    assert group_name(["average_age"], ["country"], "singer") == "average_age_per_country"
    assert group_name(["average_age"], [], "singer") == "average_age_of_singer"
    assert top_name("singer", "age", True, "1", False) == "singer_with_highest_age"
    assert top_name("singer", "age", False, "3", False) == "bottom_3_singer_by_age"
    assert set_name("INTERSECT", ["name"], "singer") == "common_name"
    assert set_name("EXCEPT", ["name", "age"], "singer") == "remaining_singer"


def test_names_are_valid_and_short() -> None:
    assert slug("CountryName of Ünïcode-Ärea") == "country_name_of_unicode_area"
    assert step_name("order") == "order_rows"
    assert step_name("2023 orders") == "step_2023_orders"
    assert len(step_name("a" * 60)) == 48
