"""Several policies in one table (Reward-SQL, Tables 1, 2, 4 and 5): one row a policy, one column a way of choosing.

A policy is measured in one inference run a seed. Questions of all seeds are pooled for the interval and for the tests,
and the seeds' own accuracies stand beside it: the interval knows of the questions' chance, not of the training's.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import fsum
from pathlib import Path
from typing import Any

from verl_sql.evaluation.best_of_n_summary import (
    COMPARED,
    Chosen,
    accuracy,
    change,
    chosen_answers,
    paired,
    quadrant_table,
)
from verl_sql.evaluation.candidates import Answered, Candidate, CandidatesError, read_candidates

ORACLE = "oracle"
COLUMNS = (*COMPARED, ORACLE)
"""The ways of choosing that the table shows."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy's inference runs.

    Attributes:
        label: its name in the table.
        seeds: questions of each run.
    """

    label: str
    seeds: tuple[tuple[Answered, ...], ...]

    @property
    def n(self) -> int:
        """Samples a question."""
        return len(self.seeds[0][0].samples)


def read_policy(label: str, folders: Sequence[Path], split: str | None = None) -> Policy:
    """A policy from its folders, one a seed.

    Args:
        label: its name.
        folders: of `verl-sql infer`.
        split: only the questions of this split; None for all.

    Raises:
        CandidatesError: a folder is not judged, holds no such question, or the numbers of samples differ.
    """
    seeds = tuple(tuple(_of_split(folder, split)) for folder in folders)
    if len({len(questions[0].samples) for questions in seeds}) > 1:
        raise CandidatesError(f"the runs of {label} have different numbers of samples")
    return Policy(label, seeds)


def compare_policies(policies: Sequence[Policy]) -> dict[str, Any]:
    """The table, ready for JSON; the first policy is what the others are tested against.

    Raises:
        CandidatesError: the policies did not answer the same questions, seed by seed.
        MissingPackageError: scipy is not installed.
    """
    _check_same_questions(policies)
    chosen = {policy.label: _pooled(policy) for policy in policies}
    first = chosen[policies[0].label]
    return {
        "n": policies[0].n,
        "seeds": len(policies[0].seeds),
        "questions": sum(len(questions) for questions in policies[0].seeds),
        "policies": {policy.label: _row(policy, chosen[policy.label]) for policy in policies},
        "against_first": {
            label: {name: change(first[name], found[name]) for name in COLUMNS if name in found and name in first}
            for label, found in chosen.items()
            if label != policies[0].label
        },
    }


def _row(policy: Policy, chosen: Chosen) -> dict[str, Any]:
    """Accuracies of one policy, pooled and by seed, tests between ways of choosing, quadrants."""
    by_seed = [chosen_answers(questions) for questions in policy.seeds]
    names = [name for name in COLUMNS if name in chosen]
    shown = {name: accuracy(chosen[name]) | {"by_seed": [_share(one[name]) for one in by_seed]} for name in names}
    tested = [name for name in COMPARED if name in chosen]
    return {
        "accuracy": shown,
        "paired": [paired(chosen, *pair) for pair in combinations(tested, 2)],
        "quadrants": quadrant_table(chosen),
    }


def _pooled(policy: Policy) -> dict[str, list[Candidate]]:
    """The answers to the questions of all seeds, one seed after another; ways of choosing that every seed has."""
    by_seed = [chosen_answers(questions) for questions in policy.seeds]
    names = [name for name in by_seed[0] if all(name in one for one in by_seed)]
    return {name: [answer for one in by_seed for answer in one[name]] for name in names}


def _of_split(folder: Path, split: str | None) -> list[Answered]:
    found = read_candidates(folder / "candidates.jsonl")
    kept = [question for question in found if split is None or question.split == split]
    if not kept:
        others = ", ".join(sorted({question.split for question in found}))
        raise CandidatesError(f"{folder} holds no question of the split {split}, only of {others}")
    return kept


def _check_same_questions(policies: Sequence[Policy]) -> None:
    """See that seed i of every policy asks the same questions."""
    first = policies[0]
    for policy in policies[1:]:
        if policy.n != first.n:
            raise CandidatesError(f"{policy.label} has {policy.n} samples a question, {first.label} {first.n}")
        if _asked(policy) != _asked(first):
            raise CandidatesError(f"{policy.label} and {first.label} did not answer the same questions in every seed")


def _share(answers: Sequence[Candidate]) -> float:
    return fsum(answer.right for answer in answers) / len(answers)


def _asked(policy: Policy) -> list[list[tuple[str, str]]]:
    """What tells the questions of each seed apart from others that are named alike."""
    return [[(question.key, question.gold) for question in questions] for questions in policy.seeds]


def write_table(table: Mapping[str, Any], path: Path) -> None:
    """Write the table as JSON."""
    path.write_text(json.dumps(table, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
