"""Traces of a model that are kept when their SQL is right.

- distilled (Think2SQL §2.3; verified chains of thought, Tabular Reasoning): sample, keep at execution accuracy 1.0.
- star (Reasoning-SQL): sample; where nothing was right, show the gold as a hint and sample again.
- privileged (ReToolSQL): the teacher sees the gold from the start.

A row shows the question as it is, never the hint; a trace that tells of the hint is dropped.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import Any

import jinja2

from verl_sql.database.executor import Executor
from verl_sql.dataset.prompting import PROMPT_FOLDER
from verl_sql.dataset.sft.check import Trace, TraceFault, TraceRules, check_traces
from verl_sql.dataset.sft.questions import Question, said
from verl_sql.generation.sampler import Message, Prompt, Sampler, Sampling


class Teaching(StrEnum):
    """How traces are asked for."""

    DISTILLED = "distilled"
    """The question alone."""
    STAR = "star"
    """The question alone, then with the gold as a hint where nothing was right."""
    PRIVILEGED = "privileged"
    """With the gold from the start."""

    @property
    def rounds(self) -> tuple[bool, ...]:
        """For each round of sampling, whether the gold is shown."""
        return {Teaching.DISTILLED: (False,), Teaching.STAR: (False, True), Teaching.PRIVILEGED: (True,)}[self]


@dataclass(slots=True)
class TraceCounts:
    """What became of the completions of a whole set, by round: "plain/kept", "hinted/wrong", …"""

    fates: Counter[str] = field(default_factory=Counter)
    questions: int = 0
    answered: int = 0

    def as_dict(self) -> dict[str, Any]:
        """Plain values for a report."""
        return {
            "questions": self.questions,
            "with_trace": self.answered,
            "completions": dict(sorted(self.fates.items())),
        }


class TraceMaker:
    """Asks a sampler for traces and keeps the right ones.

    Args:
        sampler: where completions come from.
        executor: runs golds and answers.
        teaching: what the model is shown.
        sampling: n and temperature, each round.
        rules: what is asked of a trace.
        keep: traces kept a question at most.
    """

    def __init__(
        self,
        sampler: Sampler,
        executor: Executor,
        teaching: Teaching,
        sampling: Sampling,
        rules: TraceRules | None = None,
        keep: int = 1,
    ) -> None:
        """Nothing is asked yet."""
        self.sampler, self.executor, self.teaching = sampler, executor, teaching
        self.sampling, self.rules, self.keep = sampling, rules or TraceRules(), keep

    def make(self, questions: Sequence[Question], counts: TraceCounts) -> Iterator[dict[str, Any]]:
        """SFT rows for a batch of questions, in their order; those without a database give none.

        Raises:
            SamplingError: the sampler gave no completions.
        """
        asked = [question for question in questions if question.database is not None]
        kept: dict[str, list[str]] = {question.key: [] for question in asked}
        for hinted in self.teaching.rounds:
            open_ones = [question for question in asked if not kept[question.key]]
            self._round(open_ones, hinted, kept, counts)
        counts.questions += len(questions)
        counts.answered += sum(bool(texts) for texts in kept.values())
        for question in asked:
            yield from (question.row(said(text)) for text in kept[question.key])

    def _round(
        self, questions: Sequence[Question], hinted: bool, kept: Mapping[str, list[str]], counts: TraceCounts
    ) -> None:
        """Sample once for every question and keep what is right."""
        prompts = [Prompt(hinted_prompt(q) if hinted else q.prompt) for q in questions]
        groups = self.sampler.sample(prompts, self.sampling) if prompts else []
        tried = [(q, c) for q, group in zip(questions, groups, strict=True) for c in group]
        traces = [Trace(c.text, q.database, q.gold, c.finished, hinted) for q, c in tried if q.database]
        faults = check_traces(traces, self.executor, self.rules)
        for (question, completion), fault in zip(tried, faults, strict=True):
            texts = kept[question.key]
            if fault is None and completion.text in texts:
                fault = TraceFault.REPEAT
            fate = str(fault) if fault else "kept" if len(texts) < self.keep else "spare"
            counts.fates[f"{'hinted' if hinted else 'plain'}/{fate}"] += 1
            if fate == "kept":
                texts.append(completion.text)


def hinted_prompt(question: Question) -> tuple[Message, ...]:
    """The question's chat with the gold shown at the end of the last message."""
    *before, last = question.prompt
    hint = _hint().render(gold=question.gold).strip()
    return (*before, {"role": last["role"], "content": f"{last['content']}\n\n{hint}"})


@cache
def _hint() -> jinja2.Template:
    """The template of the hint; the gold goes in as it is."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    return environment.from_string((PROMPT_FOLDER / "sft_hint.jinja").read_text(encoding="utf-8"))
