"""Chain length over steps: running means by hand, and a picture of two runs."""

from pathlib import Path

import pytest

from verl_sql.evaluation.length_plot import STEPS, TOKENS, draw_lengths, length_table, running_mean
from verl_sql.evaluation.plots import ACCURACY
from verl_sql.evaluation.run_directory import MetricsLine


def metrics(lengths: list[float]) -> list[MetricsLine]:
    validation = MetricsLine(0, {"val-core/x/acc/mean@1": 0.5})
    return [validation, *(MetricsLine(i + 1, {STEPS: k, ACCURACY: k / 4}) for i, k in enumerate(lengths))]


def test_running_mean() -> None:
    assert running_mean([1, 2, 3, 4, 10, 0]) == pytest.approx([2, 2.5, 4, 3.8, 17 / 4, 14 / 3])
    assert running_mean([]) == []


def test_table() -> None:
    rows = length_table({"a": metrics([3, 3, 3, 3, 3, 1, 1, 1, 1, 1])})
    assert [(row["what"], row["first"], row["last"]) for row in rows] == [
        ("steps a chain", 3, 1),
        ("tokens a response", None, None),
        ("accuracy (acc)", 0.75, 0.25),
    ]
    assert TOKENS not in metrics([1])[1].values


def test_picture(tmp_path: Path) -> None:
    draw_lengths({"ours": metrics([2, 2, 3]), "summed": metrics([2, 1, 1])}, tmp_path / "lengths.png")
    assert (tmp_path / "lengths.png").read_bytes().startswith(b"\x89PNG")
