"""`ordered`: list equality when the gold query fixes the order of its rows, else `bag`.

Semantics: the order counts exactly when the gold query has an ORDER BY at its top level: not in a subquery, a CTE, a
window or an aggregate, and not inside a string, a quoted name or a comment. A compound query's closing ORDER BY is
top-level. Cells compare as in `bird_set`.

Source: this project.

Pitfalls: rows that tie under the gold's ORDER BY have no defined order, so a right query may be told wrong;
`test_suite` shares this, and counts an ORDER BY anywhere, even in a string.
"""

import re

from verl_sql.database.comparators.bag import bag
from verl_sql.database.comparators.rows import Rows

# SQLite's own lexical rules, as far as they decide what is inside a string, a quoted name or a comment.
_TOKEN = re.compile(
    r"""--[^\n]*+ | /\*(?s:.*?)(?:\*/|\Z)
    | '(?:[^']++|'')*+'? | "(?:[^"]++|"")*+"? | `(?:[^`]++|``)*+`? | \[[^\]]*+\]?
    | [()] | [^\W\d][\w$]*+""",
    re.VERBOSE,
)


def ordered(gold_rows: Rows, pred_rows: Rows, gold_sql: str) -> bool:
    """Whether the results are equal as lists, or as bags when `gold_sql` leaves the order of its rows open."""
    if gold_rows == pred_rows:
        return True
    return not orders_rows(gold_sql) and bag(gold_rows, pred_rows)


def orders_rows(sql: str) -> bool:
    """Whether the query has an ORDER BY at its top level (linear in the length of the text; never raises)."""
    if "order" not in sql.lower():
        return False
    depth = 0
    previous = ""
    for match in _TOKEN.finditer(sql):
        token = match.group().lower()
        if token.startswith(("--", "/*")):
            continue
        depth += (token == "(") - (token == ")")
        if depth == 0 and token == "by" and previous == "order":
            return True
        previous = token
    return False
