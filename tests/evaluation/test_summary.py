"""The summary of a synthetic run, every number worked out by hand."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from verl_sql.evaluation.run_directory import open_run
from verl_sql.evaluation.summary import installed_versions, summarize, write_summary

ROOT = Path(__file__).parents[2]


@pytest.fixture
def summary(run_dir: Path) -> dict[str, Any]:
    return summarize(open_run(run_dir))


def test_what_the_run_was(summary: Mapping[str, Any]) -> None:
    assert (summary["recipe"], summary["profile"], summary["seed"]) == ("reward_sql_grpo", "cpu", 0)
    assert summary["seconds"] == {"cold_start": 312.4, "grpo": 220}
    assert summary["total_seconds"] == pytest.approx(532.4)
    assert summary["training"] == {"steps": 3, "first_reward": 0.2, "final_reward": pytest.approx(0.6)}
    assert summary["questions"] == {"test": 8, "unseen": 2}
    assert summary["validation_steps"] == [0, 3]
    assert summary["settings"] == {"lr": 2e-4}


def test_accuracy_and_paired_test_of_the_main_split(summary: Mapping[str, Any]) -> None:
    test = summary["by_split"][summary["main_split"]]
    assert test["before"]["ex"] == 3 / 8
    assert test["after"]["ex"] == 6 / 8
    # (3/8 + z²/16 -+ z sqrt((3/8)(5/8)/8 + z²/256)) / (1 + z²/8), z² = 3.84146: (0.615091 -+ 0.412537) / 1.480182
    assert test["before"]["low"] == pytest.approx(0.136844, abs=2e-6)
    assert test["before"]["high"] == pytest.approx(0.694258, abs=2e-6)
    assert test["gain"] == 3 / 8
    assert (test["gained"], test["lost"]) == (4, 1)
    assert test["mcnemar_p"] == pytest.approx(2 * (1 + 5) / 32)


def test_unseen_questions_stay_wrong(summary: Mapping[str, Any]) -> None:
    unseen = summary["by_split"]["unseen"]
    assert unseen["after"]["ex"] == unseen["after"]["low"] == 0
    assert unseen["after"]["high"] == pytest.approx(3.841459 / 5.841459, abs=1e-6)  # z² / (2 + z²)
    assert unseen["mcnemar_p"] == 1


def test_all_questions(summary: Mapping[str, Any]) -> None:
    assert summary["all"]["questions"] == 10
    assert (summary["all"]["before"]["ex"], summary["all"]["after"]["ex"]) == (0.3, 0.6)


GROUPS = [
    ("by_exposure", "cold_start", 4, 3, 3, 1, 1),
    ("by_exposure", "rl_only", 2, 0, 2, 2, 0),
    ("by_exposure", "never", 2, 0, 1, 1, 0),
    ("by_exposure", "not_cold_start", 4, 0, 3, 3, 0),
    ("by_difficulty", "simple", 4, 1, 3, 2, 0),
    ("by_difficulty", "challenging", 4, 2, 3, 2, 1),
]


@pytest.mark.parametrize(("kind", "name", "n", "before", "after", "gained", "lost"), GROUPS)
def test_groups_of_the_main_split(
    summary: Mapping[str, Any], kind: str, name: str, n: int, before: int, after: int, gained: int, lost: int
) -> None:
    group = summary[kind][name]
    assert group["questions"] == n
    assert (group["before"]["ex"], group["after"]["ex"]) == (before / n, after / n)
    assert (group["gained"], group["lost"]) == (gained, lost)


def test_groups_stand_in_reading_order_and_there_are_no_others(summary: Mapping[str, Any]) -> None:
    assert list(summary["by_exposure"]) == ["cold_start", "rl_only", "never", "not_cold_start"]
    assert list(summary["by_difficulty"]) == ["simple", "challenging"]


def test_outcomes_over_all_questions(summary: Mapping[str, Any]) -> None:
    assert summary["outcomes"] == {"before": {"pred_error": 7, "match": 3}, "after": {"match": 6, "mismatch": 4}}


def test_several_samples(synthetic: dict[str, Any], tmp_path: Path) -> None:
    summary = summarize(open_run(synthetic["write_run"](tmp_path, samples=3)))
    test = summary["by_split"]["test"]
    assert summary["samples_per_question"] == 3
    assert test["before"]["ex"] == pytest.approx((3 * 1 + 5 * 2 / 3) / 8)  # the second and third sample are right
    assert test["before"]["pass_at_k"] == pytest.approx({"1": (3 + 5 * 2 / 3) / 8, "2": 1.0, "3": 1.0})
    assert (test["gained"], test["lost"]) == (4, 1)
    assert sum(summary["outcomes"]["before"].values()) == 30


def test_versions_come_from_metadata() -> None:
    found = installed_versions({"pytest": ("no-such-distribution", "pytest"), "nothing": ("no-such-distribution",)})
    assert found["pytest"] == pytest.__version__
    assert found["nothing"] is None
    assert re.fullmatch(r"3\.\d+\.\d+\S*", found["python"] or "")


def test_written_summary_is_the_same(summary: dict[str, Any], tmp_path: Path) -> None:
    write_summary(summary, tmp_path / "summary.json")
    assert json.loads((tmp_path / "summary.json").read_text()) == summary


def test_every_key_is_documented(summary: Mapping[str, Any]) -> None:
    document = (ROOT / "docs" / "evaluation.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`(\w+)`", document))
    keys = {*summary, *summary["all"], *summary["all"]["before"], *summary["training"], "pass_at_k"}
    assert keys - documented == set()
