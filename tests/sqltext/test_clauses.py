"""Tokens sorted into clauses."""

import pytest

from verl_sql.sqltext.clauses import clause_tokens


@pytest.mark.parametrize(
    ("sql", "clauses"),
    [
        ("SELECT a, b FROM t JOIN u ON x = y", {"select": "a , b", "from": "t join u on x = y"}),
        ("SELECT a FROM t WHERE b GROUP BY c HAVING d ORDER BY e DESC LIMIT 3 OFFSET 1",
         {"select": "a", "from": "t", "where": "b", "group by": "c", "having": "d", "order by": "e desc",
          "limit": "3 offset 1"}),
        ("SELECT a FROM t WHERE b IN (SELECT c FROM u WHERE d)",
         {"select": "a", "from": "t", "where": "b in ( select c from u where d )"}),
        ("SELECT a FROM t UNION ALL SELECT b FROM u", {"select": "a b", "from": "t u"}),
        ("WITH x AS (SELECT a FROM t) SELECT b FROM x", {"select": "b a", "from": "x t"}),
        ("(SELECT a) EXCEPT (SELECT b FROM u)", {"select": "b a", "from": "u"}),
        ("SELECT a FROM t WHERE b IS NOT DISTINCT FROM c",
         {"select": "a", "from": "t", "where": "b is not distinct from c"}),
        ("SELECT `order` FROM [group]", {"select": '"order"', "from": '"group"'}),
        ("VALUES (1)", {"select": "( 1 )"}),
        ("SELECT a FROM t WHERE (", {"select": "a", "from": "t", "where": "("}),
        ("SELECT a FROM", {"select": "a", "from": ""}),
        ("no query at all", {}),
        ("", {}),
    ],
)  # fmt: skip
def test_clauses(sql: str, clauses: dict[str, str]):
    assert clause_tokens(sql) == {name: tuple(text.split()) for name, text in clauses.items()}
