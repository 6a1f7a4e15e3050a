"""What each stage of Reward-SQL brought in one run: cold start, GRPO, and the choice among N answers.

Read from the run's folder, where the recipe leaves `prm/model/prm_report.json` and `best_of_n/summary.json`; a stage
that did not run is left out.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verl_sql.evaluation.canvas import draw

CHOICES = ("self_consistency", "outcome_model", "prm_mean", "oracle")
"""Ways of choosing that the summary of a training run repeats; the rest is in `best_of_n/summary.json`."""
BARS = {
    "cold_start": ("cold start", "#9aa5b1"),
    "grpo": ("+ GRPO", "#1f5fa8"),
    "self_consistency": ("+ self-consistency", "#3a8f4d"),
    "outcome_model": ("+ outcome model", "#d9772b"),
    "prm_mean": ("+ PRM", "#6ea6dd"),
    "oracle": ("oracle (pass@n)", "#d5d5d5"),
}
"""Name and colour of each bar, in order."""


def stage_results(run: Path) -> dict[str, Any]:
    """`prm`: the model's numbers on held-out steps; `best_of_n`: n and accuracy by way of choosing."""
    found: dict[str, Any] = {}
    if (report := _read(run / "prm" / "model" / "prm_report.json")) is not None:
        found["prm"] = report["held_out"]
    if (summary := _read(run / "best_of_n" / "summary.json")) is not None:
        chosen = {name: summary["accuracy"][name] for name in CHOICES if name in summary["accuracy"]}
        found["best_of_n"] = {"n": summary["n"], "questions": summary["questions"], "accuracy": chosen}
    return found


def gains(summary: Mapping[str, Any]) -> dict[str, Mapping[str, float]]:
    """Accuracy on the main split after each stage, in the order of BARS; each has `ex`, `low`, `high`."""
    main = summary["by_split"][summary["main_split"]]
    found = {"cold_start": main["before"], "grpo": main["after"], **summary["best_of_n"]["accuracy"]}
    return {name: found[name] for name in BARS if name in found}


def draw_gains(summary: Mapping[str, Any], path: Path) -> None:
    """Write the accuracy after each stage, with 95 % intervals, as PNG.

    Args:
        summary: of `verl_sql.evaluation.summary.summarize`, with `best_of_n`.
        path: the file.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """
    shown = gains(summary)

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        heights = [100 * accuracy["ex"] for accuracy in shown.values()]
        errors = [
            [100 * (a["ex"] - a["low"]) for a in shown.values()],
            [100 * (a["high"] - a["ex"]) for a in shown.values()],
        ]
        labels, colours = zip(*(BARS[name] for name in shown), strict=True)
        bars = axes.bar(labels, heights, yerr=errors, color=colours, capsize=4)
        axes.bar_label(bars, fmt="%.1f", padding=3)
        axes.set_ylabel("execution accuracy, %")
        axes.set_ylim(0, 108)
        questions, n = summary["best_of_n"]["questions"], summary["best_of_n"]["n"]
        axes.set_title(f"{summary['main_split']}: {questions} questions, seed {summary['seed']}, best of {n}")
        axes.tick_params(axis="x", labelrotation=15)

    draw(path, (7.5, 4.4), paint)


def _read(file: Path) -> Any:
    """A JSON file, None if it is not there."""
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
