"""Why an example is dropped or flagged, and what to do for each reason."""

import ast
import inspect
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise


class Reason(StrEnum):
    """What can be wrong with an example."""

    ERRATUM = "erratum"
    """Its id stands in a list of known errors."""
    DUPLICATE = "duplicate"
    """An earlier example has the same database, question and gold query."""
    NO_DATABASE = "no_database"
    """Its database is not under the root."""
    GOLD_ERROR = "gold_error"
    """The gold query does not run (error, forbidden, or a damaged database)."""
    GOLD_UNCOMPILABLE = "gold_uncompilable"
    """There is no database, and the gold query does not compile against its schema."""
    GOLD_TIMEOUT = "gold_timeout"
    """The gold query ran past its deadline."""
    GOLD_TOO_LARGE = "gold_too_large"
    """The gold query's result is beyond the executor's limits."""
    GOLD_SLOW = "gold_slow"
    """The gold query runs, but longer than the configured number of seconds."""
    GOLD_EMPTY = "gold_empty"
    """The gold query returns no row: any query that returns nothing would match it."""
    GOLD_NULL = "gold_null"
    """The gold query returns nothing but NULL."""
    TIME_DEPENDENT = "time_dependent"
    """The gold query asks for the current time (`'now'`, CURRENT_*), so its result changes by itself."""
    IMPLICIT_TIME = "implicit_time"
    """The gold query calls a date function without a time, such as `DATETIME()`, which means the current one."""
    RANDOM = "random"
    """The gold query calls random()."""
    TIED_LIMIT = "tied_limit"
    """A LIMIT cuts through rows that its ORDER BY does not tell apart: the result is not determined."""
    NESTED_TIE = "nested_tie"
    """The same in a subquery, where the choice changes the result of the whole."""
    UNORDERED_LIMIT = "unordered_limit"
    """A LIMIT without ORDER BY cuts rows off: the result is not determined."""
    FLOAT_SUM = "float_sum"
    """A sum or an average of the gold query has other last digits when rows are read backwards."""
    ROW_ORDER = "row_order"
    """The gold query's result is another one when rows are read backwards."""
    CONSENSUS = "consensus"
    """Two language models say that the gold query does not answer the question (Reasoning-SQL)."""
    UNJUDGED = "unjudged"
    """A language model gave no usable verdict about the gold query; never a reason to drop."""
    UNLINKED = "unlinked"
    """A language model gave no usable selection of the schema: names and values were used instead."""
    UNKNOWN_NAMES = "unknown_names"
    """A language model selected names that the schema does not have; they were left out."""
    LONG_PROMPT = "long_prompt"
    """The prompt is longer than configured."""
    UNFIT_SCHEMA = "unfit_schema"
    """The prompt's schema could not be built for it."""
    NOT_SAMPLED = "not_sampled"
    """It is sound, but not in the stratified sample that was asked for."""


class Action(StrEnum):
    """What to do with an example that a reason applies to."""

    DROP = "drop"
    """Leave it out; count it and list its id."""
    FLAG = "flag"
    """Keep it; name the reason in `details.flags`, count it and list its id."""
    IGNORE = "ignore"
    """Keep it and say nothing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One reason that applies to an example, with what was seen."""

    reason: Reason
    detail: str = ""


def meanings() -> dict[str, str]:
    """Each reason's meaning, as the docstring of the member says it."""
    body = ast.parse(inspect.getsource(Reason)).body[0].body  # type: ignore[attr-defined]
    return {
        str(ast.literal_eval(member.value)): " ".join(str(ast.literal_eval(doc.value)).split())
        for member, doc in pairwise(body)
        if isinstance(member, ast.Assign) and isinstance(doc, ast.Expr)
    }
