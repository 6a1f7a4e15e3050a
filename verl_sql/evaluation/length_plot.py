"""Chain length and accuracy over training steps, several runs side by side (Reward-SQL, Appendix A.3.2, Figures 4, 5).

What the picture is for: under an advantage that sums step scores to the end (DeepSeekMath's process supervision) a
policy can gain reward by writing fewer steps. A run in which length falls while accuracy does not rise is hacked.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from verl_sql.evaluation.canvas import draw
from verl_sql.evaluation.plots import ACCURACY, series
from verl_sql.evaluation.run_directory import MetricsLine

STEPS = "reward/n_steps/mean"
"""What `verl_sql.integration.reward_metrics` calls the mean number of steps of a batch's chains."""
TOKENS = "response_length/mean"
PANELS = ((STEPS, "steps a chain"), (TOKENS, "tokens a response"), (ACCURACY, "accuracy (acc)"))
SMOOTHED_OVER = 5
"""Batches a running mean takes in; the batches themselves are drawn faintly."""


def draw_lengths(runs: Mapping[str, Sequence[MetricsLine]], path: Path) -> None:
    """Write the picture as PNG: a panel each for steps, tokens and accuracy, a line a run.

    Args:
        runs: verl's metrics by step, by the run's label.
        path: the file to write.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """

    def paint(figure: Any) -> None:
        for axes, (name, label) in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
            for number, (run, metrics) in enumerate(runs.items()):
                steps, values = series(metrics, name)
                axes.plot(steps, values, color=f"C{number}", alpha=0.3, linewidth=1)
                axes.plot(steps, running_mean(values), color=f"C{number}", label=run)
            axes.set(title=f"training batches: {label}", xlabel="step")
            axes.grid(alpha=0.3)
            axes.legend(fontsize=9)

    draw(path, (15, 4.4), paint)


def length_table(runs: Mapping[str, Sequence[MetricsLine]]) -> list[dict[str, Any]]:
    """For each run and panel the mean of the first and of the last SMOOTHED_OVER batches, None without any."""
    rows = []
    for run, metrics in runs.items():
        for name, label in PANELS:
            _, values = series(metrics, name)
            first, last = values[:SMOOTHED_OVER], values[-SMOOTHED_OVER:]
            ends = {"first": sum(first) / len(first), "last": sum(last) / len(last)} if values else {}
            rows.append({"run": run, "what": label, "first": None, "last": None} | ends)
    return rows


def running_mean(values: Sequence[float]) -> list[float]:
    """Each value's mean with those up to two places before and behind it."""
    half = SMOOTHED_OVER // 2
    windows = [values[max(0, place - half) : place + half + 1] for place in range(len(values))]
    return [sum(window) / len(window) for window in windows]
