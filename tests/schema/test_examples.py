"""Which values M-Schema shows."""

import pytest

from verl_sql.schema.examples import choose_examples


@pytest.mark.parametrize(
    ("values", "type_name", "shown"),
    [
        ([1, 2, 3, 4, 5], "INTEGER", ["1", "2", "3"]),
        ([None, "", "a"], "TEXT", ["a"]),
        ([], "TEXT", []),
        ([None, ""], "TEXT", []),
        (["x" * 20, "b"], "TEXT", ["x" * 20, "b"]),
        (["a", "x" * 21], "TEXT", ["a"]),
        (["a", "x" * 51], "TEXT", []),
        (["a", "b", "c", "x" * 51], "TEXT", ["a", "b", "c"]),
        (["2020-01-01", "2021-01-01"], "DATE", ["2020-01-01"]),
        (["10:00"], "TIME", ["10:00"]),
        (["a", "ann@example.org"], "TEXT", []),
        (["a", "http://example.org"], "TEXT", []),
        (["www.example.org"], "TEXT", []),
        (["me @ home"], "TEXT", ["me @ home"]),
        ([3, 4.5], "DECIMAL", ["3.0", "4.5"]),
        ([3, 4.5], "REAL", ["3", "4.5"]),
        ([b"\x00"], "BLOB", []),
        (["a\nb"], "TEXT", ["a\nb"]),
    ],
)
def test_rule(values: list, type_name: str, shown: list[str]) -> None:
    assert choose_examples(values, type_name) == shown
