"""A diagnosis as text for the policy, in words of a closed vocabulary that holds no name and no literal of any query.

`FROM_tables: one_table_missing`, `first_step: WHERE_clause: operator_wrong`: each word is compounded, so that hardly a
name or a value is spelled like it. Where the database does have such a name, the word gets a `_` more; that choice
looks at the schema, which the prompt shows anyway, and never at the gold.
"""

import re
from collections.abc import Collection, Iterable
from functools import lru_cache

from verl_sql.sqltext.diagnosis import PLACES, Clause, Finding
from verl_sql.sqltext.items import SchemaNames
from verl_sql.sqltext.shape_pairs import Kind

HEAD, MORE = "SQL_diagnosis", "further_differences"
MAX_LINES = 8
"""Clauses that are told, outermost query first."""
MAX_DEPTH = 2
"""Words of a place: the innermost ones."""

_COUNTS = ("one", "two", "several")
_NOUNS = {
    Clause.SELECT: ("column", "columns"), Clause.DISTINCT: ("keyword", "keywords"), Clause.SOURCES: ("table", "tables"),
    Clause.JOINS: ("join", "joins"), Clause.WHERE: ("predicate", "predicates"), Clause.GROUP_BY: ("key", "keys"),
    Clause.HAVING: ("predicate", "predicates"), Clause.ORDER_BY: ("key", "keys"), Clause.LIMIT: ("number", "numbers"),
    Clause.NESTED: ("subquery", "subqueries"), Clause.STEPS: ("step", "steps"), Clause.BRANCHES: ("branch", "branches"),
    Clause.WHOLE: ("query", "queries"),
}  # fmt: skip
_COUNTED = (Kind.MISSING, Kind.NOT_NEEDED, Kind.WRONG)
_WORD = re.compile(r"\w+")


def diagnosis_text(findings: Iterable[Finding], avoid: Collection[str] = (), max_lines: int = MAX_LINES) -> str:
    """The findings as lines, those of one clause in one place together.

    Args:
        findings: from `verl_sql.sqltext.diagnosis.diagnose`.
        avoid: words that no word of the text may equal, case-folded: `schema_words` of the database.
        max_lines: clauses that are told.
    """
    lines: dict[tuple[tuple[str, ...], Clause], list[str]] = {}
    for finding in findings:
        lines.setdefault((finding.place[-MAX_DEPTH:], finding.clause), []).append(_word(finding))
    texts = [": ".join((*place, clause, ", ".join(dict.fromkeys(words)))) for (place, clause), words in lines.items()]
    shown = texts[:max_lines] + ([MORE] if len(texts) > max_lines else [])
    return _WORD.sub(lambda match: _spelled(match.group(), avoid), "\n".join([f"{HEAD}:", *(f"- {t}" for t in shown)]))


@lru_cache(maxsize=512)
def schema_words(names: SchemaNames) -> frozenset[str]:
    """Every word in the names of tables and columns, case-folded."""
    every = [*names.columns, *(column for columns in names.columns.values() for column in columns)]
    return frozenset(word.casefold() for name in every for word in _WORD.findall(name))


def vocabulary() -> frozenset[str]:
    """Every word that a text may hold when nothing has to be avoided; finite, and the same for all questions."""
    findings = [Finding((), clause, kind, count) for clause in Clause for kind in Kind for count in (1, 2, 3)]
    return frozenset({HEAD, MORE, *PLACES, *Clause, *map(_word, findings)})


def _word(finding: Finding) -> str:
    """The word for kind and count, `two_predicates_missing`, `operator_wrong`, `two_times_operator_wrong`."""
    count = _COUNTS[min(finding.count, 3) - 1]
    if finding.kind in _COUNTED:
        return f"{count}_{_NOUNS[finding.clause][finding.count > 1]}_{finding.kind}"
    return str(finding.kind) if finding.count == 1 else f"{count}_times_{finding.kind}"


def _spelled(word: str, avoid: Collection[str]) -> str:
    """The word, with as many `_` more as it takes to be none of those to avoid."""
    while word.casefold() in avoid:
        word += "_"
    return word
