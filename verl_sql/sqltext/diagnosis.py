"""Progress-SQL's oracle-guided diagnosis: in which clause a query differs from the gold, and how, in no word of it.

The two diagnostic trees (`verl_sql.sqltext.profile`) are walked together. What comes out are findings from a finite
set: a place, a clause, a kind, a small count. Names and literals only ever enter as "equal or not": two golds that
differ in nothing but the names and literals that the prediction does not have give the same findings. The paper's own
feedback texts are not public; clauses and kinds here are this project's reading of its abstract.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from verl_sql.sqltext.clauses import clause_tokens
from verl_sql.sqltext.items import NO_SCHEMA, SchemaNames
from verl_sql.sqltext.profile import CLAUSES, Profile, pair_nested, profile_of, structural_alignment
from verl_sql.sqltext.scan import unquote
from verl_sql.sqltext.shape_pairs import Kind, paired_kinds, without_owners


class Clause(StrEnum):
    """What a finding is about; the value is the word that the policy reads."""

    SELECT = "SELECT_list"
    """The expressions of the result."""
    DISTINCT = "DISTINCT_keyword"
    """Whether rows are made distinct."""
    SOURCES = "FROM_tables"
    """Tables, steps and subqueries that are read."""
    JOINS = "JOIN_list"
    """How they are joined."""
    WHERE = "WHERE_clause"
    """Predicates on rows."""
    GROUP_BY = "GROUP_BY_clause"
    """Grouping keys."""
    HAVING = "HAVING_clause"
    """Predicates on groups."""
    ORDER_BY = "ORDER_BY_clause"
    """Sort keys."""
    LIMIT = "LIMIT_clause"
    """Number of rows, and the first of them."""
    NESTED = "nested_queries"
    """Subqueries."""
    STEPS = "WITH_steps"
    """CTEs."""
    BRANCHES = "set_operations"
    """UNION, INTERSECT, EXCEPT."""
    WHOLE = "whole_query"
    """The query as a whole."""


_CLAUSE = dict(zip(CLAUSES, list(Clause)[: len(CLAUSES)], strict=True))
_BY_TOKENS = {"from": "sources"}
_WITH_VALUES = {"select": Clause.SELECT, "from": Clause.JOINS, "where": Clause.WHERE, "having": Clause.HAVING}


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference.

    Attributes:
        place: where in the prediction, outermost first, as words of `PLACES`; empty for the outermost query.
        clause: the clause that differs.
        kind: how.
        count: how often, from 1; what is shown is only one, two or several.
    """

    place: tuple[str, ...]
    clause: Clause
    kind: Kind
    count: int = 1


_INNER = {clause: f"{word}_subquery" for clause, word in (
    ("select", "SELECT"), ("sources", "FROM"), ("joins", "JOIN"), ("where", "WHERE"), ("having", "HAVING"),
)}  # fmt: skip
_STEPS = ("first_step", "second_step", "third_step", "fourth_step", "fifth_step", "later_step")
_BRANCHES = ("second_branch", "third_branch", "later_branch")
_OTHER = "inner_subquery"
PLACES = (*_INNER.values(), _OTHER, *_STEPS, *_BRANCHES)
"""The words of a place."""


def diagnose(pred: str, gold: str, names: SchemaNames = NO_SCHEMA) -> tuple[Finding, ...]:
    """How a prediction that is known to be wrong differs from the gold, outermost first; never empty, never raises.

    When the trees agree, literals are compared clause by clause and the select lists in their order; when those agree
    too, the finding is that the structure is the same.
    """
    have, want = profile_of(pred, names), profile_of(gold, names)
    if not have.parsed or not want.parsed:
        kind = Kind.UNPARSED if want.parsed else Kind.OTHER
        return (Finding((), Clause.WHOLE, kind), *_presence(pred, gold))
    found = list(_walk(have, want, ()))
    differ = {finding.clause for finding in found}
    found += [finding for finding in _values(pred, gold, names) if finding.clause not in differ]
    return tuple(found) or (Finding((), Clause.WHOLE, Kind.SAME),)


def nearest_gold(pred: str, golds: Sequence[str], names: SchemaNames) -> str:
    """The form of the gold to compare with: a chain with the chain, and then the one whose tree agrees most.

    A question may have its gold as one query and as a chain of CTEs. Of equals the first is taken.
    """
    profile = profile_of(pred, names)
    alike = [gold for gold in golds if _has_steps(profile_of(gold, names)) == _has_steps(profile)]
    return max(alike or golds, key=lambda gold: structural_alignment(profile, profile_of(gold, names)))


def _has_steps(profile: Profile) -> bool:
    """Whether a query is a chain of CTEs."""
    return any(place == "with" for place, _ in profile.nested)


def _walk(pred: Profile, gold: Profile, place: tuple[str, ...]) -> Iterator[Finding]:
    """The findings of two paired queries and of what is inside them."""
    for clause in CLAUSES:
        for kind, count in _clause_kinds(clause, pred, gold).items():
            yield Finding(place, _CLAUSE[clause], kind, count)
    yield from _nested(pred, gold, place)
    yield from _branches(pred, gold, place)


def _clause_kinds(clause: str, pred: Profile, gold: Profile) -> Counter[Kind]:
    """How one clause differs."""
    have, want = pred.clauses.get(clause, ()), gold.clauses.get(clause, ())
    if clause != "sources" and pred.clauses.get("sources") != gold.clauses.get("sources"):
        have, want = without_owners(clause, have), without_owners(clause, want)  # said once, of the sources
    missing, extra = Counter(want) - Counter(have), Counter(have) - Counter(want)
    kinds = paired_kinds(clause, tuple(missing.elements()), tuple(extra.elements()))
    if not missing and not extra and clause == "select" and not _same_order(pred, gold):
        kinds[Kind.COLUMN_ORDER] += 1
    if clause not in ("select", "sources", "joins") and (clause in pred.clauses) != (clause in gold.clauses):
        if max(len(have), len(want)) == 1 or clause == "limit":
            kinds.clear()  # that the clause is missing says it
        kinds[Kind.CLAUSE_MISSING if clause in gold.clauses else Kind.CLAUSE_NOT_NEEDED] += 1
    return kinds


def _same_order(pred: Profile, gold: Profile) -> bool:
    """Whether two select lists of the same expressions have them in the same order."""
    return without_owners("select", pred.outputs) == without_owners("select", gold.outputs)


def _nested(pred: Profile, gold: Profile, place: tuple[str, ...]) -> Iterator[Finding]:
    """Findings inside paired subqueries and steps, then those that have no partner."""
    pairs = sorted((i, j) for _, i, j in pair_nested(pred, gold))
    for i, j in pairs:
        yield from _walk(pred.nested[i][1], gold.nested[j][1], (*place, _place(pred, i)))
    alone_p = [where for i, (where, _) in enumerate(pred.nested) if i not in {i for i, _ in pairs}]
    alone_g = [where for j, (where, _) in enumerate(gold.nested) if j not in {j for _, j in pairs}]
    for kind, alone in ((Kind.MISSING, alone_g), (Kind.NOT_NEEDED, alone_p)):
        steps = alone.count("with")
        if steps:
            yield Finding(place, Clause.STEPS, kind, steps)
        if len(alone) > steps:
            yield Finding(place, Clause.NESTED, kind, len(alone) - steps)


def _branches(pred: Profile, gold: Profile, place: tuple[str, ...]) -> Iterator[Finding]:
    """Findings inside paired branches of a set operation, of their operators, and of their number."""
    for index, ((op_p, inner_p), (op_g, inner_g)) in enumerate(zip(pred.branches, gold.branches, strict=False)):
        if op_p != op_g:
            yield Finding(place, Clause.BRANCHES, Kind.OPERATOR)
        yield from _walk(inner_p, inner_g, (*place, _BRANCHES[min(index, 2)]))
    surplus = len(pred.branches) - len(gold.branches)
    if surplus:
        yield Finding(place, Clause.BRANCHES, Kind.NOT_NEEDED if surplus > 0 else Kind.MISSING, abs(surplus))


def _place(pred: Profile, index: int) -> str:
    """The word for a nested query of the prediction: a step by its number, a subquery by its clause."""
    where = pred.nested[index][0]
    if where != "with":
        return _INNER.get(where, _OTHER)
    number = sum(place == "with" for place, _ in pred.nested[:index])
    return _STEPS[min(number, len(_STEPS) - 1)]


def _presence(pred: str, gold: str) -> Iterator[Finding]:
    """Without trees: which clauses one text has and the other lacks."""
    have, want = clause_tokens(pred), clause_tokens(gold)
    for name in dict.fromkeys((*want, *have)):
        if (name in have) != (name in want):
            clause = _CLAUSE[_BY_TOKENS.get(name, name)]
            yield Finding((), clause, Kind.CLAUSE_MISSING if name in want else Kind.CLAUSE_NOT_NEEDED)


def _values(pred: str, gold: str, names: SchemaNames) -> Iterator[Finding]:
    """Clauses whose literals differ, wherever in the query the clause stands."""
    have, want = clause_tokens(pred), clause_tokens(gold)
    for name, clause in _WITH_VALUES.items():
        a, b = _literals(have.get(name, ()), names), _literals(want.get(name, ()), names)
        if a != b:
            yield Finding((), clause, Kind.LITERAL, max((a - b).total(), (b - a).total()))


def _literals(tokens: Sequence[str], names: SchemaNames) -> Counter[str]:
    """Numbers and quoted texts among the tokens of a clause; double quotes hold one when nothing is so called."""
    found = [unquote(token) for token in tokens if token[0] == "'" or token[0].isdigit()]
    quoted = [unquote(token) for token in tokens if token[0] == '"']
    return Counter(found + [text for text in quoted if not _is_name(text.lower(), names)])


def _is_name(text: str, names: SchemaNames) -> bool:
    """Whether a table or a column of the schema is so called."""
    return text in names.columns or any(text in columns for columns in names.columns.values())
