"""Names that explain a step: what was filtered, joined, counted or ranked, read off the step's own conditions.

`asia_country`, `singer_with_age_over_20`, `concert_count_per_stadium_id`, `top_3_stadium_by_capacity`.
"""

import re
import unicodedata
from collections.abc import Sequence

from sqlglot import exp

from verl_sql.dataset.cocte.nodes import (
    Node,
    aggregates,
    from_clause,
    is_keyword,
    is_query,
    local_nodes,
    nested_queries,
    unwrap,
)

MAX_NAME = 48
"""Characters beyond which a name is told shorter."""
_MAX_WORD = 28
_COMPARISONS = {exp.GT: "over", exp.GTE: "at_least", exp.LT: "under", exp.LTE: "at_most"}
_FLIPPED = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}
_VALUES = {exp.Avg: "average", exp.Sum: "total", exp.Max: "highest", exp.Min: "lowest", exp.GroupConcat: "list_of"}

Phrase = tuple[str, str]
"""Words before and after the noun; one of the two is empty."""


def slug(text: str) -> str:
    """The text as a bare name in lower case; empty when no ASCII letter or digit is left."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", plain)
    return re.sub(r"[^a-z0-9]+", "_", words.lower()).strip("_")


def step_name(*candidates: str) -> str:
    """The first candidate that is short enough and a valid bare name, else the last one cut to fit."""
    cleaned = [_valid(slug(candidate)) for candidate in candidates]
    return next((name for name in cleaned if len(name) <= MAX_NAME), cleaned[-1][:MAX_NAME].rstrip("_"))


def _valid(name: str) -> str:
    """A name that may stand bare."""
    if not name or name[0].isdigit():
        return f"step_{name}".rstrip("_")
    return f"{name}_rows" if is_keyword(name) else name


def filter_name(noun: str, conditions: Sequence[Node]) -> str:
    """Rows of `noun` that fulfil the conditions."""
    phrases = [phrase(condition) for condition in conditions]
    before = [p[0] for p in phrases if p[0]]
    after = [p[1] for p in phrases if p[1]]
    tail = "_and_".join(after)
    link = "" if tail.startswith(("in_", "not_in_", "with_", "without_", "of_")) else "with_"
    full = "_".join([*before, noun, *([link + tail] if tail else [])])
    columns = list(dict.fromkeys(name for condition in conditions for name in _columns(condition)))
    by_columns = [f"{noun}_by_{'_and_'.join(columns[:3])}"] if columns else []
    return step_name(full, *by_columns, f"filtered_{noun}")


def phrase(condition: Node) -> Phrase:
    """One condition in words."""
    if isinstance(condition, exp.Paren):
        return phrase(condition.this)
    if isinstance(condition, exp.Or):
        left, right = phrase(condition.this), phrase(condition.expression)
        return (
            ("_or_".join((left[0], right[0])), "") if left[0] and right[0] else ("", f"{_any(left)}_or_{_any(right)}")
        )
    if isinstance(condition, exp.And):
        return "", f"{_any(phrase(condition.this))}_and_{_any(phrase(condition.expression))}"
    if isinstance(condition, exp.Not):
        return _negated(condition.this)
    if isinstance(condition, exp.In):
        return _membership(condition)
    if isinstance(condition, exp.Exists):
        return "", f"with_{_target(condition.this)}"
    if isinstance(condition, exp.Between):
        low, high = _value(condition.args["low"]), _value(condition.args["high"])
        return "", f"{_subject(condition.this)}_{low}_to_{high}"
    if isinstance(condition, exp.Like):
        return "", f"{_subject(condition.this)}_like_{_value(condition.expression)}"
    return _comparison(condition)


def _any(words: Phrase) -> str:
    """The words of a phrase, wherever they would stand."""
    return words[0] or words[1]


def _comparison(condition: Node) -> Phrase:
    """`=`, `<>`, `<`, `IS` and the like."""
    if not isinstance(condition, exp.Binary):
        return "", "_and_".join(_columns(condition)) or "condition"
    left, right = condition.this, condition.expression
    kind = type(condition)
    if isinstance(left, exp.Literal) and not isinstance(right, exp.Literal):
        left, right, kind = right, left, _FLIPPED.get(kind, kind)
    if kind in (exp.EQ, exp.NEQ, exp.Is):
        return _equality(left, right, kind is exp.NEQ)
    word = _COMPARISONS.get(kind, "and")
    return "", f"{_subject(left)}_{word}_{_value(right)}"


def _equality(left: Node, right: Node, negative: bool) -> Phrase:
    """`=` with a word becomes an adjective, with anything else words behind the noun."""
    if isinstance(right, exp.Null):
        return "", f"without_{_subject(left)}"
    value = _value(right)
    nested = nested_queries(right)
    if nested and not negative:
        same = "" if value == _subject(left) else f"{_subject(left)}_"
        return "", f"{same}of_{_target(nested[0])}"
    if isinstance(right, exp.Literal) and right.is_string and value and not value[0].isdigit() and len(value) > 1:
        return f"non_{value}" if negative else value, ""
    return "", f"{_subject(left)}_{'not_' if negative else ''}{value or 'empty'}"


def _negated(inner: Node) -> Phrase:
    """NOT of something."""
    if isinstance(inner, exp.Paren):
        return _negated(inner.this)
    if isinstance(inner, exp.Is) and isinstance(inner.expression, exp.Null):
        return "", f"with_{_subject(inner.this)}"
    if isinstance(inner, exp.Exists):
        return "", f"without_{_target(inner.this)}"
    if isinstance(inner, exp.EQ | exp.Is):
        return _equality(inner.this, inner.expression, True)
    words = _any(phrase(inner))
    return "", f"not_{words}"


def _membership(condition: Node) -> Phrase:
    """IN a list or a query."""
    query = condition.args.get("query")
    if query is not None:
        return "", f"in_{_target(unwrap(query))}"
    values = [_value(value) for value in condition.expressions]
    if len(values) <= 2 and all(isinstance(v, exp.Literal) and v.is_string for v in condition.expressions):
        return "_or_".join(values), ""
    return "", f"{_subject(condition.this)}_{'_or_'.join(values) if len(values) <= 3 else f'among_{len(values)}'}"


def _target(query: Node) -> str:
    """The step or table that a nested query reads."""
    origin = from_clause(query) if isinstance(query, exp.Select) else None
    return slug(origin.this.name) if origin is not None and isinstance(origin.this, exp.Table) else "subquery"


def _subject(node: Node) -> str:
    """What is compared, by the names of its columns."""
    return slug("_".join(_columns(node))) or "value"


def _columns(node: Node) -> list[str]:
    """Names of the columns in an expression, each once, at most two."""
    return list(dict.fromkeys(slug(n.name) for n in local_nodes(node) if isinstance(n, exp.Column)))[:2]


def _value(node: Node) -> str:
    """What something is compared with, short."""
    if isinstance(node, exp.Neg):
        return f"minus_{_value(node.this)}"
    if isinstance(node, exp.Literal):
        return slug(str(node.this))[:_MAX_WORD].rstrip("_")
    nested = nested_queries(node)
    if nested and isinstance(nested[0], exp.Select):
        return slug(nested[0].expressions[0].alias_or_name) or _target(nested[0])
    return _subject(node)


def value_name(node: Node, noun: str) -> str:
    """The name of an output column that the query gives none."""
    if isinstance(node, exp.Column):
        return node.name
    if isinstance(node, exp.Paren | exp.Cast | exp.Round | exp.Alias):
        return value_name(node.this, noun)
    if isinstance(node, exp.Window):
        return value_name(node.this, noun) if aggregates(node.this) else slug(node.this.sql_name()) or "ranking"
    return _computed_name(node, noun)


def _computed_name(node: Node, noun: str) -> str:
    """The name of an aggregate or of arithmetic."""
    if isinstance(node, exp.Count):
        return _count_name(node, noun)
    if type(node) in _VALUES:
        counted = _counted_condition(node.this) if isinstance(node, exp.Sum) else ""
        return f"{counted}_count" if counted else step_name(f"{_VALUES[type(node)]}_{_argument(node.this)}")
    if isinstance(node, exp.Div | exp.Mul):
        percent = any(n.this in ("100", "100.0") for n in node.find_all(exp.Literal))
        return "percentage" if percent else "ratio" if isinstance(node, exp.Div) else "product"
    if isinstance(node, exp.Sub):
        return "difference"
    if isinstance(node, exp.TimeToStr):
        return {"%Y": "year", "%m": "month", "%d": "day"}.get(str(node.args["format"].name), "date_part")
    if is_query(unwrap(node)):
        query = unwrap(node)
        return slug(query.expressions[0].alias_or_name) if isinstance(query, exp.Select) else "value"
    columns = _columns(node)
    return step_name(f"{'_'.join(columns)}_value") if columns else "value"


def _count_name(node: Node, noun: str) -> str:
    """The name of a COUNT."""
    counted = node.this
    if isinstance(counted, exp.Distinct):
        return step_name(f"distinct_{'_'.join(_columns(counted)) or slug(noun)}_count")
    if isinstance(counted, exp.Column) and slug(counted.name) not in ("id", f"{slug(noun)}_id"):
        return step_name(f"{slug(counted.name)}_count")
    condition = _counted_condition(counted) if counted is not None else ""
    return step_name(f"{condition or slug(noun)}_count")


def _counted_condition(node: Node) -> str:
    """What `CASE WHEN … THEN 1 END` or `IIF(…, 1, 0)` counts, in words."""
    case = unwrap(node)
    if isinstance(case, exp.Case) and len(case.args["ifs"]) == 1 and case.args.get("this") is None:
        words = _any(phrase(case.args["ifs"][0].this))
    elif isinstance(case, exp.If):
        words = _any(phrase(case.this))
    else:
        return ""
    return words if len(words) <= _MAX_WORD else "matching"


def _argument(node: Node) -> str:
    """What an aggregate is taken of."""
    if isinstance(node, exp.Distinct):
        return f"distinct_{_argument(node.expressions[0])}"
    return slug("_".join(_columns(node))) or "value"


def join_name(labels: Sequence[str], nouns: Sequence[str]) -> str:
    """Rows put together: called by the steps' names if there is room, else by those of the tables."""
    first, *others = labels
    full = f"{first}_with_{'_and_'.join(others)}"
    first, *others = nouns
    more = f"{first}_with_{others[0]}_and_{len(others) - 1}_more" if len(others) > 1 else f"joined_{first}"
    return step_name(full, f"{first}_with_{'_and_'.join(others)}", more, f"joined_{first}")


def group_name(values: Sequence[str], groups: Sequence[str], noun: str) -> str:
    """Aggregates, one row a group; without groups one row."""
    what = "_and_".join(values[:2]) if values else f"distinct_{noun}"
    if not groups:
        whole = what if noun in what or noun == "row" else f"{what}_of_{noun}"
        return step_name(whole, what, values[0] if values else noun, f"totals_of_{noun}")
    which = "_and_".join(groups)
    return step_name(
        f"{what}_per_{which}", f"{(values or [noun])[0]}_per_{groups[0]}", f"{noun}_per_{groups[0]}", "groups"
    )


def top_name(noun: str, key: str, descending: bool, limit: str, offset: bool) -> str:
    """The rows that a LIMIT keeps."""
    if not key:
        return step_name(f"first_{limit}_{noun}", f"first_{limit}_rows")
    end = "highest" if descending else "lowest"
    if offset:
        return step_name(f"{noun}_at_rank_by_{key}", f"ranked_by_{key}")
    if limit == "1":
        return step_name(f"{noun}_with_{end}_{key}", f"{end}_{key}_{noun}", f"{end}_{key}")
    side = "top" if descending else "bottom"
    return step_name(f"{side}_{limit}_{noun}_by_{key}", f"{side}_{limit}_by_{key}", f"{side}_{limit}_rows")


def set_name(operator: str, columns: Sequence[str], noun: str) -> str:
    """The rows of a compound: named after its column, or what the rows are when there are more."""
    word = {"INTERSECT": "common", "EXCEPT": "remaining"}.get(operator, "all")
    return step_name(f"{word}_{columns[0] if len(columns) == 1 else noun}", f"{word}_rows")
