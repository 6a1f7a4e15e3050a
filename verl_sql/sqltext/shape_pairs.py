"""Pairs the shapes that only the gold has with those that only the prediction has, and says how each pair differs.

A shape (`verl_sql.sqltext.profile`) is a small expression, `eq(?,team.city)`. Of all ways to pair them, one with the
most telling relations is taken, so that the kinds that come out do not depend on what anything is called.
"""

import re
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from functools import cache


class Kind(StrEnum):
    """How a clause differs; the value is the end of the word that the policy reads."""

    MISSING = "missing"
    """The gold has more of them."""
    NOT_NEEDED = "not_needed"
    """The prediction has more of them."""
    WRONG = "wrong"
    """As many, but others."""
    CLAUSE_MISSING = "clause_missing"
    """The gold has such a clause, the prediction has none."""
    CLAUSE_NOT_NEEDED = "clause_not_needed"
    """The prediction has such a clause, the gold has none."""
    AGGREGATE = "aggregate_function_wrong"
    """Another aggregate of the same argument."""
    AGGREGATE_ARGUMENT = "aggregate_argument_wrong"
    """The same aggregate of something else."""
    AGGREGATE_MISSING = "aggregate_missing"
    """The gold aggregates where the prediction does not."""
    AGGREGATE_NOT_NEEDED = "aggregate_not_needed"
    """The prediction aggregates where the gold does not."""
    COLUMN_ORDER = "column_order_wrong"
    """The same expressions in another order."""
    OPERATOR = "operator_wrong"
    """The same operands under another operator."""
    OPERAND = "operand_wrong"
    """The same operator with one operand right."""
    LITERAL = "literal_wrong"
    """The same structure with another literal."""
    DIRECTION = "direction_wrong"
    """The same sort key, ascending for descending or the other way round."""
    POSITION = "position_wrong"
    """The same sort key in another place."""
    JOIN_KIND = "join_kind_wrong"
    """The same condition, another kind of join."""
    JOIN_CONDITION = "join_condition_wrong"
    """Another condition."""
    ROW_COUNT = "row_count_wrong"
    """Another number of rows, or another first row."""
    UNPARSED = "not_understood_as_SQL"
    """The prediction could not be parsed."""
    NO_QUERY = "no_query_found"
    """There was no SQL to look at."""
    FAILS = "does_not_run"
    """The prediction does not run to its end."""
    SAME = "same_structure_other_result"
    """Nothing that a diagnosis sees differs."""
    OTHER = "other_result"
    """The gold could not be parsed: nothing more can be said of the structure."""


_AGGREGATES = frozenset({"count", "sum", "avg", "min", "max", "groupconcat", "total", "countif", "median"})
_COMMUTATIVE = frozenset({"eq", "neq", "add", "mul", "and", "or"})
_OWNER = re.compile(r"[^().,&:\s]*\.")
_MOST = 6
"""Shapes of either side up to which the best pairing is looked for; beyond it they are only counted."""

Related = tuple[int, Kind]


def paired_kinds(clause: str, missing: Sequence[str], extra: Sequence[str]) -> Counter[Kind]:
    """How often each kind of difference occurs in a clause.

    Args:
        clause: the profile's name of the clause.
        missing: shapes that only the gold has.
        extra: shapes that only the prediction has.
    """
    kinds: Counter[Kind] = Counter()
    if max(len(missing), len(extra)) > _MOST:
        kinds[Kind.WRONG] = min(len(missing), len(extra))
    else:
        kinds += Counter(_best(clause, tuple(missing), tuple(extra)))
    surplus = len(extra) - len(missing)
    kinds[Kind.NOT_NEEDED] += max(surplus, 0)
    kinds[Kind.MISSING] += max(-surplus, 0)
    return Counter({kind: kinds[kind] for kind in Kind if kinds[kind]})


def without_owners(clause: str, shapes: Sequence[str]) -> tuple[str, ...]:
    """The shapes of a clause with `table.column` cut to `.column`."""
    return tuple(_without_owners(clause, _OWNER.sub(".", shape)) for shape in shapes)


def _without_owners(clause: str, shape: str) -> str:
    """Operands and conditions that were sorted by their owners, sorted without them."""
    if clause == "joins":
        kind, condition = _join_parts(shape)
        return f"{kind} join {'&'.join(sorted(map(_sorted, condition.split('&'))))}".strip()
    if clause == "order by":
        place, _, key = shape.partition(":")
        inner, _, direction = key.rpartition(" ")
        return f"{place}:{_sorted(inner)} {direction}"
    return _sorted(shape)


def _sorted(shape: str) -> str:
    """An expression with the operands of its commutative operators in order."""
    head, args = _parts(shape)
    if not args:
        return shape
    inner = [_sorted(arg) for arg in args]
    return f"{head}({','.join(sorted(inner) if head in _COMMUTATIVE else inner)})"


def _best(clause: str, missing: tuple[str, ...], extra: tuple[str, ...]) -> list[Kind]:
    """The kinds of a pairing of the shorter side with the most telling relations; a rank outweighs all lower ones."""
    if len(missing) < len(extra):
        short, long = missing, extra
        related = [[_relation(clause, pred, gold) for pred in extra] for gold in missing]
    else:
        short, long = extra, missing
        related = [[_relation(clause, pred, gold) for gold in missing] for pred in extra]

    @cache
    def best(row: int, free: int) -> tuple[int, tuple[Kind, ...]]:
        if row == len(short):
            return 0, ()
        options = []
        for column in range(len(long)):
            if free >> column & 1:
                total, kinds = best(row + 1, free & ~(1 << column))
                rank, kind = related[row][column]
                options.append((total + (_MOST + 1) ** rank, (kind, *kinds)))
        return max(options, key=lambda option: (option[0], sorted(option[1])))

    return list(best(0, (1 << len(long)) - 1)[1])


def _relation(clause: str, pred: str, gold: str) -> Related:
    """How a predicted and a gold shape of the same clause differ: how telling that is, and the kind."""
    if clause == "select":
        return _expressions(pred, gold)
    if clause in ("where", "having"):
        return _predicates(pred, gold)
    if clause == "order by":
        return _sort_keys(pred, gold)
    if clause == "joins":
        return _joins(pred, gold)
    if clause == "limit":
        return (2, Kind.ROW_COUNT) if pred.split()[0] == gold.split()[0] else (1, Kind.ROW_COUNT)
    return 1, Kind.WRONG


def _expressions(pred: str, gold: str) -> Related:
    """Two expressions of a select list."""
    (head_p, args_p), (head_g, args_g) = _parts(pred), _parts(gold)
    is_p, is_g = head_p in _AGGREGATES, head_g in _AGGREGATES
    if is_p and is_g:
        return (4, Kind.AGGREGATE) if head_p != head_g and args_p == args_g else (3, _aggregates(head_p, head_g))
    if is_p:
        return (4 if gold in args_p else 2), Kind.AGGREGATE_NOT_NEEDED
    if is_g:
        return (4 if pred in args_g else 2), Kind.AGGREGATE_MISSING
    return 1, Kind.WRONG


def _aggregates(pred: str, gold: str) -> Kind:
    """Two aggregates of different arguments."""
    return Kind.AGGREGATE_ARGUMENT if pred == gold else Kind.AGGREGATE


def _predicates(pred: str, gold: str) -> Related:
    """Two predicates of WHERE or HAVING."""
    (head_p, args_p), (head_g, args_g) = _bare(pred), _bare(gold)
    if Counter(args_p) == Counter(args_g):
        return 4, Kind.OPERATOR  # another head, or the operands exchanged: `<` for `>`
    if head_p == head_g and {*args_p} & {*args_g} - {"?"}:
        return 3, Kind.OPERAND
    return 1, Kind.WRONG


def _sort_keys(pred: str, gold: str) -> Related:
    """Two terms of ORDER BY, `<place>:<shape> <direction>`."""
    key_p, key_g = pred.partition(":")[2], gold.partition(":")[2]
    (shape_p, _, way_p), (shape_g, _, way_g) = key_p.rpartition(" "), key_g.rpartition(" ")
    if shape_p != shape_g:
        return 1, Kind.WRONG
    return (4, Kind.DIRECTION) if way_p != way_g else (3, Kind.POSITION)


def _joins(pred: str, gold: str) -> Related:
    """Two joins, `<kind> join <condition>`."""
    (kind_p, on_p), (kind_g, on_g) = _join_parts(pred), _join_parts(gold)
    if on_p == on_g and kind_p != kind_g:
        return 3, Kind.JOIN_KIND
    return (2 if kind_p == kind_g else 1), Kind.JOIN_CONDITION


def _join_parts(shape: str) -> tuple[str, str]:
    """Kind and condition of a join."""
    kind, _, condition = f" {shape} ".partition(" join ")
    return kind.strip(), condition.strip()


def _bare(shape: str) -> tuple[str, tuple[str, ...]]:
    """Head and arguments, a negation counted to the head."""
    head, args = _parts(shape)
    if head == "not" and len(args) == 1:
        inner, args = _bare(args[0])
        return f"not {inner}", args
    return head, args


def _parts(shape: str) -> tuple[str, tuple[str, ...]]:
    """Head and arguments of `head(arg,arg)`; a shape without arguments is its own head."""
    opened = shape.find("(")
    if opened < 0 or not shape.endswith(")"):
        return shape, ()
    args, depth, begin = [], 0, opened + 1
    for at in range(begin, len(shape) - 1):
        depth += (shape[at] == "(") - (shape[at] == ")")
        if shape[at] == "," and depth == 0:
            args.append(shape[begin:at])
            begin = at + 1
    return shape[:opened], (*args, shape[begin:-1])
