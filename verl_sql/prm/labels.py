"""Step labels by Monte Carlo (Reward-SQL §4.2): chains are sampled, and from each promising prefix n completions.

    chains of a question -> tree of their prefixes -> completions, depth by depth -> a label a step -> records

Everything runs through the executor in bulk, and completions of many questions are sampled in one batch.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from verl_sql.database.execution import Execution
from verl_sql.database.executor import Executor, Pair
from verl_sql.generation.sampler import Completion, Message, Prompt, Sampler, Sampling
from verl_sql.prm.cutting import at_the_end
from verl_sql.prm.rendering import prompt_text, render_chain, render_result
from verl_sql.prm.stepping import execute_chains
from verl_sql.prm.tree import Cut, Prefix, PrefixTree, SampledChain
from verl_sql.sqltext.chain import Chain, split_chain
from verl_sql.sqltext.extract import extract_answer

Record = dict[str, Any]

ROUNDS = 4
"""How often a prefix whose completions leave it is completed again, before its step stays unknown."""
SEEDS_A_CALL = 10_000
"""Samplers count up from a call's seed for the completions of a prompt."""


@dataclass(frozen=True, slots=True)
class Labelling:
    """How labels are made. The paper names none of the numbers.

    Attributes:
        chains: chains sampled a question.
        completions: completions a prefix needs before its step is called wrong.
        exact: spend them on right steps too, so that values are shares of n (for soft labels).
        sampling: temperature, top_p, longest completion; its `n` is not used.
        comparator: decides what is right.
        timeout: seconds a query may run.
        budget: completions a question on average, beyond which prefixes are left unknown; None for no limit.
    """

    chains: int = 8
    completions: int = 8
    exact: bool = False
    sampling: Sampling = field(default_factory=Sampling)
    comparator: str = "bird_set"
    timeout: float = 30.0
    budget: float | None = None


@dataclass(frozen=True, slots=True)
class LabelQuestion:
    """A question to make labels for: its key, chat, gold and database, and what the records say of it."""

    key: str
    prompt: tuple[Message, ...]
    gold: str
    database: Path
    info: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shown:
    """A chain as the models read it: each step's result, all of it, and with its final query."""

    results: tuple[str, ...]
    text: str
    outcome_text: str


@dataclass(slots=True)
class LabelCounts:
    """What was spent and what came out.

    Attributes:
        spent: completions sampled from the beginning and from prefixes.
        plain: completions that a plain loop would spend: those chains, and n from every step of every distinct one.
        left_out: what gave no record, by reason: chains, questions (`gold_failed`) and completions (`left_the_prefix`).
        steps: labels by step position: right, wrong, unknown (behind a wrong step or beyond the budget).
    """

    questions: int = 0
    chains: int = 0
    right: int = 0
    spent: Counter[str] = field(default_factory=Counter)
    plain: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    steps: dict[int, Counter[str]] = field(default_factory=dict)

    def add_labels(self, labels: Sequence[int | None]) -> None:
        """Count the labels of one chain."""
        for position, label in enumerate(labels, 1):
            kinds = self.steps.setdefault(position, Counter())
            kinds["unknown" if label is None else "right" if label else "wrong"] += 1

    def as_dict(self) -> dict[str, Any]:
        """Plain values."""
        spent = sum(self.spent.values())
        return {
            "questions": self.questions,
            "chains": self.chains,
            "right_chains": self.right,
            "completions": {**self.spent, "spent": spent, "plain_loop": self.plain, "saved": self.plain - spent},
            "left_out": {reason: n for reason, n in sorted(self.left_out.items()) if n},
            "steps": {str(position): dict(sorted(kinds.items())) for position, kinds in sorted(self.steps.items())},
        }


def label_questions(
    questions: Sequence[LabelQuestion],
    sampler: Sampler,
    executor: Executor,
    settings: Labelling,
    cut: Cut | None = None,
) -> tuple[list[Record], LabelCounts]:
    """Labels for a batch of questions.

    Args:
        questions: answered together.
        sampler: the policy.
        executor: runs the SQL.
        settings: how many of what.
        cut: where prefixes are cut for this sampler; None cuts at the step's end.

    Returns:
        A record for each distinct chain, in the questions' order (see `record`), and the counts.

    Raises:
        SamplingError: the policy gave no completions.
        ExecutorError: the pool is at fault.
    """
    search = _Search(questions, sampler, executor, settings, cut or at_the_end)
    search.sample_chains()
    depth = 1
    while any(len(sampled.prefixes) >= depth for tree in search.trees for sampled in tree.chains):
        search.explore(depth)
        depth += 1
    return search.records(), search.counts


Wanted = dict[int, list[tuple[LabelQuestion, Prefix, Prompt]]]


class _Search:
    """The search of one batch: a tree a question."""

    def __init__(
        self,
        questions: Sequence[LabelQuestion],
        sampler: Sampler,
        executor: Executor,
        settings: Labelling,
        cut: Cut,
    ) -> None:
        """Nothing sampled yet."""
        self._questions, self._sampler, self._executor = list(questions), sampler, executor
        self._settings, self._cut, self._calls = settings, cut, 0
        self.counts = LabelCounts(questions=len(questions))
        self.trees: list[PrefixTree] = []

    def sample_chains(self) -> None:
        """Sample the chains, judge them, and let the trees grow."""
        self._leave_out_failing_golds()
        prompts = [Prompt(question.prompt) for question in self._questions]
        groups = self._sampler.sample(prompts, self._sampling(self._settings.chains)) if prompts else []
        drafts = [(number, *draft) for number, group in enumerate(groups) for draft in self._drafts(group)]
        right = self._right([(self._questions[number], chain.text) for number, _, chain, _, _ in drafts])
        for (number, text, chain, start, times), is_right in zip(drafts, right, strict=True):
            ends = [start + step.end for step in chain.steps]
            self.trees[number].add(SampledChain(text, chain, is_right, times), ends, self._cut)
            self.counts.plain += self._settings.completions * len(ends)
        self.counts.spent["from_the_beginning"] += sum(map(len, groups))
        self.counts.plain += sum(map(len, groups))

    def _leave_out_failing_golds(self) -> None:
        """Where the gold query fails no completion could be right, and every step would be called wrong."""
        ran = self._executor.execute_many(
            [(question.database, question.gold) for question in self._questions], timeout=self._settings.timeout
        )
        kept = [question for question, gold in zip(self._questions, ran, strict=True) if gold.ok]
        if len(kept) < len(self._questions):
            self.counts.left_out["gold_failed"] += len(self._questions) - len(kept)
        self._questions, self.trees = kept, [PrefixTree() for _ in kept]

    def _drafts(self, group: Sequence[Completion]) -> Iterator[tuple[str, Chain, int, int]]:
        """The distinct chains of a question: completion up to the end of its SQL, chain, start of the SQL, times."""
        self.counts.left_out["cut"] += sum(not completion.finished for completion in group)
        for text, times in Counter(completion.text for completion in group if completion.finished).items():
            answer = extract_answer(text)
            chain = split_chain(answer.sql or "")
            if reason := _unfit(chain, answer.sql):
                self.counts.left_out[reason] += times
            else:
                yield text[: answer.end], chain, answer.start, times

    def explore(self, depth: int) -> None:
        """Complete the open prefixes of one depth, all questions together, as far as the budget goes.

        Completions that left their prefix say nothing, so a prefix may want some more after the first round.
        """
        for _ in range(ROUNDS):
            wanted = self._wanted(depth)
            if not wanted:
                return
            for missing, items in sorted(wanted.items()):
                self._complete(missing, items)

    def _wanted(self, depth: int) -> Wanted:
        """What the open prefixes of a depth still want and the budget allows, by the number of completions."""
        left, wanted = self._left(), Wanted()
        for question, tree in zip(self._questions, self.trees, strict=True):
            for prefix in tree.open_prefixes(depth, self._settings.completions, self._settings.exact):
                missing = self._settings.completions - prefix.tried
                left -= missing
                if left >= 0:
                    wanted.setdefault(missing, []).append((question, prefix, Prompt(question.prompt, prefix.kept)))
        return wanted

    def _left(self) -> float:
        """Completions that the budget still allows."""
        budget = self._settings.budget
        return float("inf") if budget is None else budget * self.counts.questions - self.counts.spent.total()

    def _complete(self, missing: int, items: Sequence[tuple[LabelQuestion, Prefix, Prompt]]) -> None:
        """Sample `missing` completions from each prefix and note how many are right.

        A completion that does not end the step as the prefix does, where the prefix was cut short, says nothing about
        it; one that was cut by the length limit, or holds no SQL, is a failure.
        """
        groups = self._sampler.sample([prompt for _, _, prompt in items], self._sampling(missing))
        tried: list[tuple[Prefix, LabelQuestion, str]] = []
        for (question, prefix, prompt), group in zip(items, groups, strict=True):
            whole = [prompt.prefix + completion.text for completion in group]
            same = [text for text in whole if text.startswith(prefix.text)]
            tried += [(prefix, question, extract_answer(text).sql or "") for text in same]
            self.counts.spent["from_prefixes"] += len(whole)
            self.counts.left_out["left_the_prefix"] += len(whole) - len(same)
        right = self._right([(question, sql) for _, question, sql in tried])
        for (prefix, _, _), is_right in zip(tried, right, strict=True):
            prefix.tried += 1
            prefix.right += is_right

    def _right(self, items: Sequence[tuple[LabelQuestion, str]]) -> list[bool]:
        """Whether each SQL gives its question's gold result."""
        name = self._settings.comparator
        pairs = [Pair(question.database, question.gold, sql) for question, sql in items]
        compared = self._executor.compare_many(pairs, comparators=(name,), timeout=self._settings.timeout)
        return [
            bool(sql) and comparison.gold.ok and comparison.pred.ok and comparison.values[name] == 1.0
            for (_, sql), comparison in zip(items, compared, strict=True)
        ]

    def _sampling(self, n: int) -> Sampling:
        """The settings' sampling for n completions a prompt; each call has a seed of its own."""
        sampling = self._settings.sampling
        self._calls += 1
        seed = None if sampling.seed is None else sampling.seed + SEEDS_A_CALL * self._calls
        return replace(sampling, n=n, seed=seed)

    def records(self) -> list[Record]:
        """The records of all chains; their steps run in bulk, every distinct prefix once."""
        chains = [(q, sampled) for q, tree in zip(self._questions, self.trees, strict=True) for sampled in tree.chains]
        items = [(question.database, sampled.chain) for question, sampled in chains]
        results = execute_chains(self._executor, items, timeout=self._settings.timeout, score_final=True)
        return [self._record(q, sampled, ran) for (q, sampled), ran in zip(chains, results, strict=True)]

    def _record(self, question: LabelQuestion, sampled: SampledChain, results: Sequence[Execution]) -> Record:
        """One record, counted."""
        labels = sampled.labels(self._settings.completions)
        self.counts.chains += 1
        self.counts.right += sampled.right
        self.counts.add_labels(labels)
        return record(question, sampled, labels, _shown(prompt_text(question.prompt), sampled.chain, results))


def _shown(prompt: str, chain: Chain, results: Sequence[Execution]) -> Shown:
    """What the models read; `results` are those of the steps, and of the final query if there is one."""
    steps = results[: len(chain.steps)]
    return Shown(
        tuple(map(render_result, steps)),
        render_chain(prompt, chain, steps).text,
        render_chain(prompt, chain, results, score_final=True).text,
    )


def _unfit(chain: Chain, sql: str | None) -> str:
    """Why a completion gives no chain to label, "" if it does."""
    if not sql:
        return "no_answer"
    if not chain.complete:
        return "incomplete"
    return "recursive" if chain.recursive else "" if chain.steps else "no_steps"


def record(question: LabelQuestion, sampled: SampledChain, labels: Sequence[int | None], shown: Shown) -> Record:
    """One line of the labels' file.

    `chain` is the SQL and `steps` its steps, each with its `end` in the SQL, its `label` (1, 0 or null, masked), its
    `value` (share of right completions, null if masked), `n`, the completions behind that, and its `result` as the
    models read it. `text` is the whole chain as the process reward model reads it, a tag a step; `outcome_text` as the
    outcome model does, with the final query. `outcome` is 1 if the whole chain is right; `times` how often it came.
    """
    steps = [
        {
            "end": step.end,
            "label": label,
            "value": None if label is None else round(prefix.value, 4),
            "n": prefix.tried,
            "result": result,
        }
        for step, label, prefix, result in zip(
            sampled.chain.steps, labels, sampled.prefixes, shown.results, strict=True
        )
    ]
    return {
        **question.info,
        "question": question.key,
        "prompt": prompt_text(question.prompt),
        "gold": question.gold,
        "chain": sampled.chain.text,
        "steps": steps,
        "outcome": int(sampled.right),
        "times": sampled.times,
        "text": shown.text,
        "outcome_text": shown.outcome_text,
    }
