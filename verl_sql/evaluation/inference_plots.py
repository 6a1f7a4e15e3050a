"""Pictures of best-of-N: accuracy against n (Reward-SQL, Figure 10) and latency by stage (Figure 11)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from verl_sql.evaluation.canvas import draw

LINES: dict[str, tuple[str, dict[str, Any]]] = {
    "oracle": ("pass@n (oracle)", {"color": "#777777", "linestyle": "--"}),
    "prm_mean": ("PRM, mean", {"color": "#1f5fa8", "linewidth": 2.4}),
    "prm_min": ("PRM, min", {"color": "#6ea6dd", "linewidth": 1}),
    "prm_product": ("PRM, product", {"color": "#9dc3e6", "linewidth": 1}),
    "prm_last": ("PRM, last step", {"color": "#c5d9ee", "linewidth": 1}),
    "prm_vote": ("PRM's votes", {"color": "#1f5fa8", "linestyle": ":"}),
    "outcome_model": ("outcome model", {"color": "#d9772b"}),
    "outcome_vote": ("outcome model's votes", {"color": "#d9772b", "linestyle": ":"}),
    "self_consistency": ("self-consistency", {"color": "#3a8f4d"}),
    "first_executable": ("first executable", {"color": "#b9b9b9"}),
}
"""Name and style of each selector's line, from the top of the legend."""
STAGES = {
    "generation": ("generation", "#9aa5b1"),
    "execution": ("execution", "#3a8f4d"),
    "rendering": ("rendering", "#8fc79b"),
    "prm": ("PRM scoring", "#1f5fa8"),
    "orm": ("outcome model scoring", "#d9772b"),
}


def draw_accuracy_over_n(summary: Mapping[str, Any], path: Path) -> None:
    """Write the expected accuracy of every selector over the number of samples as PNG.

    Args:
        summary: of `verl_sql.evaluation.best_of_n.summary_stage`.
        path: the file to write.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """

    def paint(figure: Any) -> None:
        axes = figure.subplots()
        for name, (label, style) in LINES.items():
            points = summary["accuracy_over_n"].get(name)
            if points:
                axes.plot(list(map(int, points)), [100 * v for v in points.values()], marker="o", label=label, **style)
        greedy = summary["accuracy"]["greedy"]
        axes.axhline(100 * greedy["ex"], color="black", linestyle=":", label="greedy")
        axes.axhspan(100 * greedy["low"], 100 * greedy["high"], color="black", alpha=0.06, linewidth=0)
        _finish_over_n(axes, summary)

    draw(path, (7.5, 5.2), paint)


def draw_latency(summary: Mapping[str, Any], path: Path) -> None:
    """Write the seconds of one question by stage over the number of samples as PNG.

    Args:
        summary: one with `latency`.
        path: the file to write.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """

    def paint(figure: Any) -> None:
        axes, latency = figure.subplots(), summary["latency"]
        below = [0.0] * len(latency)
        for name, (label, color) in STAGES.items():
            seconds = [stages.get(name, 0.0) for stages in latency.values()]
            if any(seconds):
                axes.bar(list(latency), seconds, 0.65, bottom=below, label=label, color=color)
                below = [low + more for low, more in zip(below, seconds, strict=True)]
        for place, total in enumerate(below):
            axes.text(place, total, f"{total:.2f}", ha="center", va="bottom", fontsize=8)
        axes.set(title="one question: median seconds by stage", xlabel="samples", ylabel="seconds")
        axes.grid(axis="y", alpha=0.3)
        axes.set_axisbelow(True)
        axes.legend(fontsize=9)

    draw(path, (7.5, 4.6), paint)


def _finish_over_n(axes: Any, summary: Mapping[str, Any]) -> None:
    sizes = [int(size) for size in next(iter(summary["accuracy_over_n"].values()))]
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    title = f"{summary['questions']} questions, temperature {summary['temperature']:g}"
    axes.set(title=title, xlabel="samples n", ylabel="execution accuracy, %")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8)
