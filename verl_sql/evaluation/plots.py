"""One picture of a run: training reward and accuracy, outcome shares, and validation accuracy before and after."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from verl_sql.evaluation.run_directory import MetricsLine
from verl_sql.evaluation.statistics import MissingPackageError
from verl_sql.evaluation.summary import REWARD

ACCURACY = "reward/acc/mean"
OUTCOME = "outcome/"
"""What `verl_sql.integration.reward_metrics` calls the accuracy and the outcome shares of a training step."""
MOST_OUTCOMES = 7
BEFORE, AFTER = "#9aa5b1", "#1f5fa8"


def draw_run(metrics: Sequence[MetricsLine], summary: Mapping[str, Any], path: Path) -> None:
    """Write the picture as PNG.

    Args:
        metrics: verl's metrics by step.
        summary: of `verl_sql.evaluation.summary.summarize`.
        path: the file to write.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        sentence = "the plot needs matplotlib: pip install matplotlib, or use the recipes' .venv"
        raise MissingPackageError(sentence) from error

    figure = Figure(figsize=(15, 4.8), layout="constrained")
    FigureCanvasAgg(figure)
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1.2))
    _draw_reward(left, metrics)
    _draw_outcomes(middle, metrics)
    _draw_validation(right, summary)
    figure.suptitle(f"{summary['recipe']} ({summary['profile']}), {summary['training']['steps']} steps")
    figure.savefig(path, dpi=110)


def series(metrics: Sequence[MetricsLine], name: str) -> tuple[list[int], list[float]]:
    """The steps at which a metric was logged, and its values."""
    found = [(line.step, line.values[name]) for line in metrics if name in line.values]
    return [step for step, _ in found], [value for _, value in found]


def outcome_names(metrics: Sequence[MetricsLine]) -> list[str]:
    """Outcomes that occurred in training, the most frequent first, at most MOST_OUTCOMES."""
    totals: dict[str, float] = {}
    for line in metrics:
        for name, value in line.values.items():
            if name.startswith(OUTCOME):
                totals[name] = totals.get(name, 0.0) + value
    return sorted((name for name in totals if totals[name] > 0), key=lambda name: -totals[name])[:MOST_OUTCOMES]


def bars(summary: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The groups of questions of the last panel, with their labels: splits first, then exposures of the main split."""
    main = summary["main_split"]
    found = [(split, group) for split, group in summary["by_split"].items()]
    found.sort(key=lambda labelled: labelled[0] != main)
    exposures = [(f"{main}:\n{name.replace('_', ' ')}", group) for name, group in summary["by_exposure"].items()]
    return found + exposures if len(exposures) > 1 else found


def _draw_reward(axes: Any, metrics: Sequence[MetricsLine]) -> None:
    wide = {"color": "#f0a877", "linewidth": 5}  # a reward that is the accuracy shows as a border around it
    for name, label, style in ((REWARD, "reward", wide), (ACCURACY, "accuracy (acc)", {"color": AFTER, "marker": "."})):
        steps, values = series(metrics, name)
        if steps:
            axes.plot(steps, values, label=label, **style)
    _finish(axes, "training batches: mean reward and accuracy", "mean of the batch")


def _draw_outcomes(axes: Any, metrics: Sequence[MetricsLine]) -> None:
    for name in outcome_names(metrics):
        steps, values = series(metrics, name)
        axes.plot(steps, values, label=name.removeprefix(OUTCOME).replace("_", " "), marker="o", markersize=3)
    axes.set_ylim(0, 1)
    _finish(axes, "training batches: how completions ended", "share of the batch")


def _finish(axes: Any, title: str, label: str) -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set(title=title, xlabel="step", ylabel=label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(alpha=0.3)
    if axes.lines:
        axes.legend(fontsize=9)
    else:
        axes.text(0.5, 0.5, "not logged", ha="center", va="center", transform=axes.transAxes)


def _draw_validation(axes: Any, summary: Mapping[str, Any]) -> None:
    groups = bars(summary)
    for offset, (when, color) in enumerate((("before", BEFORE), ("after", AFTER))):
        places = [index + 0.38 * (offset - 0.5) for index in range(len(groups))]
        found = [group[when] for _, group in groups]
        values = [100 * one["ex"] for one in found]
        # Rounding can leave an end of the interval a hair inside the value.
        below = [max(0.0, 100 * (one["ex"] - one["low"])) for one in found]
        above = [max(0.0, 100 * (one["high"] - one["ex"])) for one in found]
        axes.bar(places, values, 0.36, color=color, label=when, yerr=(below, above), capsize=3, ecolor="#333333")
        for place, value, top in zip(places, values, above, strict=True):
            axes.text(place, value + top + 1, f"{value:.1f}", ha="center", fontsize=8)
    axes.set_xticks(range(len(groups)), [f"{label}\nn = {group['questions']}" for label, group in groups], fontsize=8)
    axes.set(title="held-out questions: EX with 95 % intervals", ylabel="execution accuracy, %", ylim=(0, 108))
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.legend(fontsize=9)
