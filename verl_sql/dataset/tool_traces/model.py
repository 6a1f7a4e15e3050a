"""A model as the teacher: it sees the gold and calls the tools; traces that end right and do not tell are kept."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache

import jinja2

from verl_sql.database.executor import Executor
from verl_sql.dataset.parquet import Message
from verl_sql.dataset.prompting import PROMPT_FOLDER
from verl_sql.dataset.sft.check import Trace, TraceFault, TraceRules, check_traces, tells
from verl_sql.dataset.sft.questions import Question
from verl_sql.dataset.tool_traces.chat import Chat, run_chats
from verl_sql.generation.sampler import Sampler, Sampling
from verl_sql.sqltext.extract import AnswerStyle
from verl_sql.tools import Toolbox


def model_traces(
    questions: Sequence[Question],
    sampler: Sampler,
    toolbox: Toolbox,
    executor: Executor,
    sampling: Sampling,
    max_turns: int,
    keep: int,
    counts: Counter[str],
) -> Iterator[tuple[Question, list[Message]]]:
    """Questions with the messages of a trace that holds, `keep` a question at most, different ones.

    Args:
        questions: those of one batch; one without a database is left out.
        sampler: the teacher.
        toolbox: answers its calls.
        executor: runs golds and answers.
        sampling: `n` chats a question, temperature, tokens a turn.
        max_turns: turns of the assistant at most.
        keep: traces kept a question.
        counts: what became of the traces: `kept`, `spare`, or a TraceFault.

    Raises:
        SamplingError: the teacher gave nothing.
    """
    tried = [question for question in questions if question.database for _ in range(sampling.n)]
    starts = [(hinted_prompt(q, toolbox), q.database) for q in tried if q.database]
    chats = run_chats(starts, sampler, toolbox, sampling, max_turns)
    rules = TraceRules(AnswerStyle.ANSWER_TAG, timeout=toolbox.limits.deadline)
    kept: dict[str, list[list[Message]]] = {question.key: [] for question in questions}
    for question, chat, fault in zip(tried, chats, _faults(tried, chats, executor, rules), strict=True):
        found = kept[question.key]
        if fault is None and chat.said in found:
            fault = TraceFault.REPEAT
        counts[str(fault) if fault else "kept" if len(found) < keep else "spare"] += 1
        if fault is None and len(found) < keep:
            found.append(chat.said)
            yield question, chat.said


def _faults(
    questions: Sequence[Question], chats: Sequence[Chat], executor: Executor, rules: TraceRules
) -> Iterator[TraceFault | None]:
    """What is wrong with each chat; the last turn must answer right, and no turn may tell of the gold."""
    traces = [
        Trace(chat.said[-1]["content"], chat.database, question.gold, chat.finished, secret=True)
        for question, chat in zip(questions, chats, strict=True)
    ]
    for chat, fault in zip(chats, check_traces(traces, executor, rules), strict=True):
        earlier = " ".join(message["content"] for message in chat.said[:-1] if message["role"] == "assistant")
        yield fault or (TraceFault.TELLS if tells(earlier, None) else None)


def hinted_prompt(question: Question, toolbox: Toolbox) -> list[Message]:
    """The question's chat, with the tools and the gold at the end of its last message."""
    *before, last = question.prompt
    tools = [json.dumps(schema["function"], ensure_ascii=False) for schema in toolbox.schemas]
    hint = _hint().render(tools=tools, gold=question.gold).strip()
    return [*before, {"role": last["role"], "content": f"{last['content']}\n\n{hint}"}]


@cache
def _hint() -> jinja2.Template:
    """The template of the hint; the gold goes in as it is."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    return environment.from_string((PROMPT_FOLDER / "tool_hint.jinja").read_text(encoding="utf-8"))
