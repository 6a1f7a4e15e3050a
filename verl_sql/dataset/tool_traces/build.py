"""Write an SFT set of tool traces: prompts of a prepared parquet, answered with calls, tool answers and the SQL."""

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from verl_sql.database.catalog import Catalog, DatabaseNotFound
from verl_sql.database.executor import Executor
from verl_sql.dataset.parquet import SFT_SCHEMA, Message, write_rows
from verl_sql.dataset.sft.questions import Question, read_questions
from verl_sql.dataset.tool_traces.model import model_traces
from verl_sql.dataset.tool_traces.scripted import Habits, answered, n_calls, scripted_trace
from verl_sql.generation.sampler import Sampler, Sampling
from verl_sql.tools import Toolbox
from verl_sql.tools.desk import ToolLimits

BATCH = 64


@dataclass(frozen=True, slots=True)
class TraceSettings:
    """One set of tool traces.

    Attributes:
        habits: of the scripted teacher.
        plain_share: share of the questions answered without tools, under their prompt without tools; needs `plain`.
        seed: decides what is left to chance; the same for a question wherever it stands.
        limits: of the tools.
        sampling: of a model as the teacher.
        max_turns: of a model as the teacher.
        keep: traces of a model kept a question.
    """

    habits: Habits = field(default_factory=Habits)
    plain_share: float = 0.0
    seed: int = 0
    limits: ToolLimits = field(default_factory=ToolLimits)
    sampling: Sampling = field(default_factory=lambda: Sampling(n=4, temperature=0.7, top_p=0.95, max_tokens=2048))
    max_turns: int = 6
    keep: int = 1


def write_tool_traces(
    source: Path,
    out: Path,
    settings: TraceSettings,
    db_root: Path | None = None,
    plain: Path | None = None,
    sampler: Sampler | None = None,
    workers: int | None = None,
) -> dict[str, int]:
    """Write one set in SFT_SCHEMA; a report stands beside it.

    Args:
        source: a prepared parquet, its prompts those of the policy that calls tools.
        out: the parquet to write.
        settings: how traces are made.
        db_root: folder of the databases; None takes VERL_SQL_DB_ROOT.
        plain: the same questions under prompts without tools, for `plain_share`.
        sampler: the model that teaches; without it the script does.
        workers: worker processes; None takes all cores.

    Returns:
        What became of the questions or traces: `rows`, `calls`, `kept`, …

    Raises:
        FileNotFoundError, ValueError, DatabaseNotFound: something the user must change; also when no row came out.
        SamplingError: the model gave nothing.
    """
    if settings.plain_share and plain is None:
        raise ValueError("plain_share needs plain=…, the same questions prepared with prompts without tools")
    root = db_root or os.environ.get("VERL_SQL_DB_ROOT")
    if not root:
        raise DatabaseNotFound("no folder of databases: give db_root=… or set VERL_SQL_DB_ROOT")
    counts: Counter[str] = Counter()
    with Executor(workers, settings.limits.timeout) as executor:
        toolbox = Toolbox(executor, settings.limits)
        questions = read_questions(source, Catalog(root))
        unaided = {q.key: q for q in read_questions(plain)} if plain and settings.plain_share else {}
        if sampler is None:
            traces = _scripted(questions, unaided, toolbox, settings, counts)
        else:
            traces = _of_model(questions, sampler, toolbox, executor, settings, counts)
        counts["rows"] = write_rows(out, _rows(traces, counts), SFT_SCHEMA)
    if not counts["rows"]:
        out.unlink()
        raise ValueError(f"no trace came out of {source}: {dict(counts)}")
    told = {"source": source.name, "settings": asdict(settings), "counts": dict(counts)}
    out.with_suffix(".report.json").write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return dict(counts)


def _rows(traces: Iterator[tuple[Question, list[Message]]], counts: Counter[str]) -> Iterator[dict[str, Any]]:
    """SFT rows, the calls in them counted."""
    for question, messages in traces:
        counts["calls"] += n_calls(messages)
        yield question.row(*messages)


def _scripted(
    questions: Iterator[Question],
    unaided: dict[str, Question],
    toolbox: Toolbox,
    settings: TraceSettings,
    counts: Counter[str],
) -> Iterator[tuple[Question, list[Message]]]:
    """The script's traces, batch by batch; a share of the questions without tools, if asked for."""
    while batch := list(islice(questions, BATCH)):
        for question, messages in asyncio.run(_script_batch(batch, unaided, toolbox, settings)):
            counts["kept" if messages else "not_found"] += 1
            if messages:
                yield question, messages


async def _script_batch(
    questions: Sequence[Question], unaided: dict[str, Question], toolbox: Toolbox, settings: TraceSettings
) -> list[tuple[Question, list[Message] | None]]:
    """The traces of one batch, at once."""
    return list(await asyncio.gather(*(_script_one(q, unaided, toolbox, settings) for q in questions)))


async def _script_one(
    question: Question, unaided: dict[str, Question], toolbox: Toolbox, settings: TraceSettings
) -> tuple[Question, list[Message] | None]:
    """One question's trace, or its answer under the prompt without tools."""
    rng = random.Random(f"{settings.seed}/{question.key}")
    if question.key in unaided and rng.random() < settings.plain_share:
        return unaided[question.key], [answered(question.gold)]
    if question.database is None:
        return question, None
    details = json.loads(question.info["details"])
    trace = await scripted_trace(toolbox, question.database, question.gold, details, settings.habits, rng)
    return question, trace


def _of_model(
    questions: Iterator[Question],
    sampler: Sampler,
    toolbox: Toolbox,
    executor: Executor,
    settings: TraceSettings,
    counts: Counter[str],
) -> Iterator[tuple[Question, list[Message]]]:
    """A model's traces, batch by batch."""
    while batch := list(islice(questions, BATCH)):
        yield from model_traces(
            batch, sampler, toolbox, executor, settings.sampling, settings.max_turns, settings.keep, counts
        )
