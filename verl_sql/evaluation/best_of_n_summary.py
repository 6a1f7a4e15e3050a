"""What an inference run reached: accuracy of every selector, accuracy against n, quadrants and paired tests.

docs/inference.md names every key.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from math import fsum
from typing import Any

from verl_sql.evaluation.candidates import Answered, Candidate
from verl_sql.evaluation.pass_at_k import expected_right, sizes
from verl_sql.evaluation.quadrants import quadrants
from verl_sql.evaluation.selection import PRM_MEAN, Selector, available
from verl_sql.evaluation.separation import separations
from verl_sql.evaluation.statistics import mcnemar_exact, wilson_interval

GREEDY = "greedy"
COMPARED = (GREEDY, "self_consistency", "outcome_model", "prm_mean", "prm_vote")
"""The columns of the paper's Table 4, and the PRM's votes; each is compared with each."""
Chosen = Mapping[str, Sequence[Candidate]]
"""The answers that each way of choosing gives, one a question."""


def chosen_answers(questions: Sequence[Answered]) -> dict[str, list[Candidate]]:
    """The answer to every question, by greedy decoding and by every selector whose scores are there."""
    found = {GREEDY: [question.greedy for question in questions]}
    for selector in common_selectors(questions):
        found[selector.name] = [question.samples[selector.choose(question.samples)] for question in questions]
    return found


def common_selectors(questions: Sequence[Answered]) -> tuple[Selector, ...]:
    """The selectors that all of the samples have scores for."""
    return available([candidate for question in questions for candidate in question.samples])


def summarize(questions: Sequence[Answered]) -> dict[str, Any]:
    """The measured part of a run's summary, ready for JSON.

    Raises:
        MissingPackageError: scipy is not installed.
    """
    chosen, n = chosen_answers(questions), len(questions[0].samples)
    splits = sorted({question.split for question in questions})
    return {
        "questions": len(questions),
        "n": n,
        "accuracy": accuracies(chosen),
        "by_split": {s: accuracies(chosen_answers([q for q in questions if q.split == s])) for s in splits},
        "sample_accuracy": _mean([c.right for q in questions for c in q.samples]),
        "prm_without_dropping": accuracy(_without_dropping(questions)) if PRM_MEAN.name in chosen else None,
        "accuracy_over_n": accuracy_over_n(questions),
        "quadrants": quadrant_table(chosen),
        "separation": separations(questions, common_selectors(questions)),
        "paired": [paired(chosen, *names) for names in combinations([c for c in COMPARED if c in chosen], 2)],
        "candidates": described(questions),
    }


def accuracies(chosen: Chosen) -> dict[str, dict[str, float]]:
    """`accuracy` of each way of choosing."""
    return {name: accuracy(answers) for name, answers in chosen.items()}


def accuracy(answers: Sequence[Candidate]) -> dict[str, float]:
    """Execution accuracy with its 95 % Wilson interval over questions; `right` counts them."""
    right = sum(answer.right for answer in answers)
    interval = wilson_interval(right, len(answers))
    return {"ex": right / len(answers), "low": interval.low, "high": interval.high, "right": right}


def paired(chosen: Chosen, first: str, second: str) -> dict[str, Any]:
    """The exact McNemar test of two ways of choosing on the same questions."""
    return {"from": first, "to": second} | change(chosen[first], chosen[second])


def change(before: Sequence[Candidate], after: Sequence[Candidate]) -> dict[str, Any]:
    """Questions gained and lost between two answers to each, and the p-value of the exact McNemar test."""
    gained = sum(b.right and not a.right for a, b in zip(before, after, strict=True))
    lost = sum(a.right and not b.right for a, b in zip(before, after, strict=True))
    return {"gained": gained, "lost": lost, "mcnemar_p": mcnemar_exact(gained, lost)}


def accuracy_over_n(questions: Sequence[Answered]) -> dict[str, dict[str, float]]:
    """For each selector its expected accuracy with 1, 2, 4, … N samples (Reward-SQL, Figure 10)."""
    n = len(questions[0].samples)

    def reached(selector: Selector, size: int) -> float:
        return _mean([expected_right(selector, q.samples, size, seed) for seed, q in enumerate(questions)])

    return {s.name: {str(size): reached(s, size) for size in sizes(n)} for s in common_selectors(questions)}


def quadrant_table(chosen: Chosen) -> dict[str, dict[str, float]]:
    """The quadrants of greedy decoding and of the PRM's choice (Table 1); those whose answers carry step scores."""
    rows = {name: chosen[name] for name in (GREEDY, PRM_MEAN.name) if name in chosen}
    scored = {name: rows[name] for name in rows if all(answer.step_scores is not None for answer in rows[name])}
    return {name: asdict(quadrants(answers)) for name, answers in scored.items()}


def described(questions: Sequence[Answered]) -> dict[str, Any]:
    """What the samples are like: how they ended, steps a chain, different texts and results a question."""
    samples = [candidate for question in questions for candidate in question.samples]
    return {
        "statuses": dict(Counter(candidate.status for candidate in samples).most_common()),
        "cut": sum(not candidate.finished for candidate in samples),
        "steps": _mean([candidate.n_steps for candidate in samples]),
        "different_queries": _distinct(questions, lambda candidate: candidate.sql),
        "different_results": _distinct(questions, lambda candidate: candidate.digest if candidate.executes else None),
        "none_executes": sum(not any(c.executes for c in q.samples) for q in questions),
    }


def _distinct(questions: Sequence[Answered], what: Callable[[Candidate], str | None]) -> float:
    """Mean number of different values among the samples of a question, those that are None left out."""
    return _mean([len({what(c) for c in q.samples} - {None}) for q in questions])


def _without_dropping(questions: Sequence[Answered]) -> list[Candidate]:
    """The PRM's choice among all samples, those that do not execute as well."""
    return [max(question.samples, key=lambda candidate: candidate.process_reward or 0.0) for question in questions]


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)
