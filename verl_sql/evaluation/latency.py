"""How long one question takes with n candidates, by stage (Reward-SQL, Figure 11): generation, execution, scoring.

Questions are asked one after another, nothing else runs meanwhile, and every n gets questions of its own, so that no
stage finds work that an earlier n did. Models are loaded and the workers of the executor have started.
"""

from collections.abc import Iterator, Sequence
from statistics import median
from time import perf_counter
from typing import TypeVar

from verl_sql.database.executor import Executor
from verl_sql.evaluation.judging import Block, Judges, execute_block, score_block
from verl_sql.evaluation.pass_at_k import sizes
from verl_sql.generation.sampler import Prompt, Sampler, Sampling

Latency = dict[str, dict[str, float]]
"""Median seconds a question by n (as text), then by stage."""
T = TypeVar("T")


def generation_latency(sampler: Sampler, prompts: Sequence[Prompt], sampling: Sequence[Sampling]) -> Latency:
    """Median seconds of sampling the n completions of one prompt.

    Args:
        sampler: loaded; one prompt is sampled first to warm it up.
        prompts: dealt out to the settings in turn.
        sampling: settings that differ in n.
    """
    sampler.sample(prompts[:1], sampling[0])
    found = {}
    for settings, mine in zip(sampling, dealt(prompts, len(sampling)), strict=True):
        found[str(settings.n)] = {"generation": median(_sampling_seconds(sampler, p, settings) for p in mine)}
    return found


def judging_latency(block: Block, judges: Judges) -> Latency:
    """Median seconds of executing, rendering and scoring the first n samples of one question.

    Args:
        block: judged questions with all their completions; the greedy one is left out.
        judges: the reward models and an executor that has not run these queries yet.
    """
    counts = sizes(len(block[0][1]) - 1)
    _warm_up(judges.executor, block)
    found = {}
    for n, mine in zip(counts, dealt(block, len(counts)), strict=True):
        timed = [_judging_seconds([(question, completions[1 : n + 1])], judges) for question, completions in mine]
        found[str(n)] = {stage: median(one.get(stage, 0.0) for one in timed) for stage in timed[0]}
    return found


def merged(*parts: Latency) -> Latency:
    """Stages measured in different processes, together by n."""
    counts = dict.fromkeys(n for part in parts for n in part)
    return {n: {k: v for part in parts for k, v in part.get(n, {}).items()} for n in counts}


def dealt(items: Sequence[T], hands: int) -> Iterator[Sequence[T]]:
    """Items dealt out like cards; the surplus is left.

    Raises:
        ValueError: there are fewer items than hands.
    """
    if len(items) < hands:
        raise ValueError(f"latency is measured on at least {hands} questions, one for each n; there are {len(items)}")
    each = len(items) // hands
    for hand in range(hands):
        yield items[hand : each * hands : hands]


def _sampling_seconds(sampler: Sampler, prompt: Prompt, sampling: Sampling) -> float:
    since = perf_counter()
    sampler.sample([prompt], sampling)
    return perf_counter() - since


def _judging_seconds(block: Block, judges: Judges) -> dict[str, float]:
    executed = execute_block(block, judges)
    score_block(executed, judges)
    return dict(executed.work.seconds)


def _warm_up(executor: Executor, block: Block) -> None:
    """Start the workers and let them open the databases, as they have in a service that runs."""
    databases = dict.fromkeys(question.database for question, _ in block if question.database is not None)
    executor.execute_many([(database, "SELECT 1") for database in databases for _ in range(executor.workers)])
