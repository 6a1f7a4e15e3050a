"""The picture is drawn from whatever was logged."""

from pathlib import Path
from typing import Any

from verl_sql.evaluation.plots import bars, draw_run, outcome_names, series
from verl_sql.evaluation.run_directory import MetricsLine, open_run
from verl_sql.evaluation.summary import summarize

PNG = b"\x89PNG\r\n\x1a\n"


def size(path: Path) -> tuple[int, int]:
    """Width and height of a PNG, from its header."""
    head = path.read_bytes()[:24]
    assert head.startswith(PNG)
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def test_draws_a_run(run_dir: Path, tmp_path: Path) -> None:
    run = open_run(run_dir)
    draw_run(run.metrics, summarize(run), tmp_path / "plot.png")
    assert size(tmp_path / "plot.png") == (1650, 528)


def test_draws_a_run_that_logged_nothing_and_knows_no_exposure(run_dir: Path, tmp_path: Path) -> None:
    summary: dict[str, Any] = {**summarize(open_run(run_dir)), "by_exposure": {}}
    draw_run([MetricsLine(0, {"val": 1.0})], summary, tmp_path / "plot.png")
    assert size(tmp_path / "plot.png") == (1650, 528)


def test_series_skip_steps_without_the_metric(run_dir: Path) -> None:
    steps, values = series(open_run(run_dir).metrics, "critic/score/mean")
    assert steps == [1, 2, 3]
    assert [round(value, 6) for value in values] == [0.2, 0.4, 0.6]


def test_outcomes_that_occurred_the_most_frequent_first(run_dir: Path) -> None:
    metrics = open_run(run_dir).metrics
    # match 1.2, mismatch 1.2, no_answer 0.6
    assert set(outcome_names(metrics)[:2]) == {"outcome/match", "outcome/mismatch"}
    assert outcome_names(metrics)[2:] == ["outcome/no_answer"]


def test_bars_start_with_the_main_split(run_dir: Path) -> None:
    labels = [label for label, _ in bars(summarize(open_run(run_dir)))]
    assert labels[:2] == ["test", "unseen"]
    assert "test:\nrl only" in labels
