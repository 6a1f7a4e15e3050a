"""Which traces may be learned from: their SQL gives the gold's result, and they do not tell that they saw the gold."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from verl_sql.database.executor import Executor, Pair
from verl_sql.sqltext.extract import AnswerStyle, extract_answer

# What a trace says that was shown the answer; matched outside the SQL of the answer.
_TELLTALE = re.compile(
    r"""\b(?:
      (?:gold|golden|reference|ground[\s-]truth|known|correct|target|expected|given|provided|suggested|supplied)\s+
      (?:sql|query|queries|answer|solution|statement)
    | (?:the|this|that|a)\s+(?:hint|privileged\s+information)\b
    | (?:as|was|were|is|has\s+been)\s+(?:given|shown|provided|known)\s+to\s+(?:be\s+right|me|us)
    | for\s+(?:me|you)\s+alone
    )""",
    re.IGNORECASE | re.VERBOSE,
)


class TraceFault(StrEnum):
    """Why a trace is not learned from."""

    NO_ANSWER = "no_answer"
    """No SQL was found in it."""
    WRONG = "wrong"
    """Its SQL does not give the gold's result, or does not run."""
    CUT = "cut"
    """The length limit cut it."""
    NO_REASONING = "no_reasoning"
    """It answers without reasoning where reasoning is asked for."""
    TELLS = "tells"
    """It says that it was shown the answer."""
    REPEAT = "repeat"
    """The same text was kept for this question before."""
    GOLD_FAILS = "gold_fails"
    """The gold itself does not run: nothing can be said."""


@dataclass(frozen=True, slots=True)
class TraceRules:
    """What is asked of a trace.

    Attributes:
        style: how its answer is marked.
        comparator: which comparator must give 1.0; `bird_set` is the papers' execution accuracy.
        reasoning: whether it must hold reasoning beside the SQL.
        timeout: seconds a query may run.
    """

    style: AnswerStyle = AnswerStyle.AUTO
    comparator: str = "bird_set"
    reasoning: bool = False
    timeout: float = 30.0


@dataclass(frozen=True, slots=True)
class Trace:
    """One trace to check: its last message, the question's database and gold.

    Attributes:
        text: what the model wrote last.
        database: SQLite file.
        gold: gold SQL.
        finished: False when the length limit cut it.
        secret: whether the model was shown the gold, so that the text must not tell.
    """

    text: str
    database: Path
    gold: str
    finished: bool = True
    secret: bool = False


def tells(text: str, sql: str | None) -> bool:
    """Whether the text, its SQL left out, says that the answer was shown."""
    return bool(_TELLTALE.search(text.replace(sql, " ") if sql else text))


def check_traces(traces: Sequence[Trace], executor: Executor, rules: TraceRules) -> Iterator[TraceFault | None]:
    """For each trace its fault, None for one that may be learned from; in their order."""
    answers = [extract_answer(trace.text, rules.style) for trace in traces]
    pairs = [Pair(t.database, t.gold, answer.sql or "") for t, answer in zip(traces, answers, strict=True)]
    names = (rules.comparator,)
    compared = executor.compare_many(pairs, comparators=names, timeout=rules.timeout)
    for trace, answer, found in zip(traces, answers, compared, strict=True):
        if not found.gold.ok:
            yield TraceFault.GOLD_FAILS
        elif not trace.finished:
            yield TraceFault.CUT
        elif not answer.sql:
            yield TraceFault.NO_ANSWER
        elif found.values[rules.comparator] != 1.0:
            yield TraceFault.WRONG
        elif rules.reasoning and not _reasons(trace.text, answer.sql, answer.reasoning):
            yield TraceFault.NO_REASONING
        elif trace.secret and tells(trace.text, answer.sql):
            yield TraceFault.TELLS
        else:
            yield None


def _reasons(text: str, sql: str, reasoning: str | None) -> bool:
    """Whether there are words of reasoning: in their tags, or at least a sentence before the SQL."""
    words = reasoning if reasoning is not None else text[: text.find(sql)]
    return len(re.findall(r"[^\W\d_]{2,}", words)) >= 8
