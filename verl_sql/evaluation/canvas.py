"""A matplotlib figure without a display, written as PNG; matplotlib is imported here only when something is drawn."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from verl_sql.evaluation.statistics import MissingPackageError


def draw(path: Path, size: tuple[float, float], paint: Callable[[Any], None]) -> None:
    """Write a picture.

    Args:
        path: the PNG file.
        size: width and height in inches.
        paint: draws into the matplotlib Figure it gets.

    Raises:
        MissingPackageError: matplotlib is not installed.
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        sentence = "the plot needs matplotlib: pip install matplotlib, or use the recipes' .venv"
        raise MissingPackageError(sentence) from error
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    paint(figure)
    figure.savefig(path, dpi=110)
