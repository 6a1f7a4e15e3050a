"""What a policy that refines its SQL is told after an attempt: a diagnosis in training, else what the execution gave.

A diagnosis (`verl_sql.sqltext.diagnosis`) needs the gold and tells nothing of it but clauses and kinds. Execution
feedback needs the database alone: status, size, the first rows, or the error; it is what inference has. Both are data:
nothing in them can end the conversation or pass for an answer (`verl_sql.sqltext.quoting`).
"""

from collections.abc import Collection, Sequence

from verl_sql.database.execution import Execution
from verl_sql.sqltext.diagnosis import Clause, Finding, diagnose, nearest_gold
from verl_sql.sqltext.diagnosis_text import MAX_LINES, diagnosis_text, schema_words
from verl_sql.sqltext.items import SchemaNames
from verl_sql.sqltext.quoting import line_text, names_text, row_text
from verl_sql.sqltext.shape_pairs import Kind

ROW_LIMIT = 3
"""Rows that execution feedback shows."""
COLUMN_LIMIT = 12
"""Columns that execution feedback shows."""
RESULT_HEAD = "SQL_result:"


def diagnostic_feedback(
    sql: str, golds: Sequence[str], execution: Execution, names: SchemaNames, max_lines: int = MAX_LINES
) -> str:
    """What is wrong with `sql`, clause by clause, in the closed vocabulary of `diagnosis_text`.

    Args:
        sql: the attempt, empty when none was found; it is known to be wrong.
        golds: the forms of the gold (the query, and its chain of CTEs if there is one); the most similar is compared.
        execution: what running `sql` gave.
        names: tables and columns of the database.
        max_lines: clauses that are told.
    """
    if not sql:
        findings: tuple[Finding, ...] = (Finding((), Clause.WHOLE, Kind.NO_QUERY),)
    else:
        findings = diagnose(sql, nearest_gold(sql, golds, names), names)
        if not execution.ok:
            findings = (Finding((), Clause.WHOLE, Kind.FAILS), *findings)
    return diagnosis_text(findings, schema_words(names), max_lines)


def execution_feedback(execution: Execution, tokens: Collection[str] = ()) -> str:
    """What running an attempt gave: status, number of rows and columns and the first rows, or the error, as data.

    Args:
        execution: with its first rows, `keep_rows=ROW_LIMIT` of them.
        tokens: the tokenizer's special tokens, see `quoting.neutral`.
    """
    if not execution.ok:
        return f"{RESULT_HEAD} {execution.status}: {line_text(execution.message, tokens=tokens)}"
    width = len(execution.columns)
    lines = [f"{RESULT_HEAD} {_counted(execution.n_rows, 'row')}, {_counted(width, 'column')}"]
    if width > COLUMN_LIMIT:
        lines[0] += f", the first {COLUMN_LIMIT} columns shown"
    rows = (execution.rows or ())[:ROW_LIMIT]
    if rows:
        lines.append(names_text(execution.columns[:COLUMN_LIMIT], tokens=tokens))
        lines += [row_text(row[:COLUMN_LIMIT], tokens=tokens) for row in rows]
    if execution.n_rows > len(rows):
        lines.append("…")
    return "\n".join(lines)


def gives_cause_to_complain(execution: Execution) -> bool:
    """Whether an execution alone makes an attempt doubtful: it failed, returned no row, or nothing but NULL."""
    return not execution.ok or execution.is_empty or execution.all_null


def _counted(number: int, noun: str) -> str:
    """`1 row`, `2 rows`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")
