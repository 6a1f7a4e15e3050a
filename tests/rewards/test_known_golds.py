"""Golds known to fail are not run again, in one call or the other; what other content gave is noticed."""

import asyncio
import json
import logging
import sqlite3
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from verl_sql.reward_fns.execution import compute_score
from verl_sql.reward_fns.reasoning_sql import REWARD

from verl_sql.database.execution import Status
from verl_sql.database.gold_cache import VARIABLE, GoldResult, content_digest, gold_line, open_gold_cache
from verl_sql.rewards.settings import Settings

GOLD = "SELECT name FROM item"
RIGHT = "SELECT name FROM item ORDER BY 1"
SLOW = GoldResult(Status.OK, "d", 2, seconds=12.0, allowed=30.0)
TIMED_OUT = GoldResult(Status.TIMEOUT, message="ran past its deadline of 20 s", allowed=20.0)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    """A database root; what is read of files here is forgotten afterwards."""
    connection = sqlite3.connect(tmp_path / "shop.sqlite")
    connection.executescript("CREATE TABLE item (name TEXT); INSERT INTO item VALUES ('a'), ('b')")
    connection.close()
    yield tmp_path
    open_gold_cache.cache_clear()


def recorded(root: Path, result: GoldResult, gold: str = GOLD) -> str:
    """A file of gold results that holds one about `shop`."""
    content = content_digest(root / "shop.sqlite")
    (root / "golds.jsonl").write_text(gold_line("shop", content, gold, result), encoding="utf-8")
    return str(root / "golds.jsonl")


def score(root: Path, **options: Any) -> dict[str, Any]:
    return compute_score("mine", RIGHT, GOLD, {"db_id": "shop"}, db_root=str(root), **options)


@pytest.mark.parametrize(
    ("result", "timeout", "outcome"),
    [
        (GoldResult(Status.OK, "d", 2, seconds=0.1), 30, "match"),
        (GoldResult(Status.ERROR, message="no such table: items"), 30, "gold_error"),
        (GoldResult(Status.TOO_LARGE, message="the result has more than 9 rows"), 30, "gold_error"),
        (TIMED_OUT, 20, "gold_error"),
        (TIMED_OUT, 21, "match"),
        (SLOW, 10, "gold_error"),
        (SLOW, 30, "match"),
    ],
)
def test_what_is_taken_from_the_record(root: Path, result: GoldResult, timeout: float, outcome: str) -> None:
    row = score(root, gold_cache=recorded(root, result), timeout=timeout)
    assert row["outcome"] == outcome
    assert row["skipped"] == float(outcome == "gold_error")
    assert set(row) == set(score(root))


def test_the_environment_names_the_file_for_every_reward(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, recorded(root, TIMED_OUT))
    assert score(root, timeout=5)["outcome"] == "gold_error"


def test_in_an_event_loop(root: Path) -> None:
    settings = Settings(db_root=str(root), timeout=5, gold_cache=recorded(root, TIMED_OUT))
    sample = asyncio.run(REWARD.asample(f"<answer>{RIGHT}</answer>", GOLD, {"db_id": "shop"}, settings))
    assert sample.final.comparison.gold.status is Status.TIMEOUT
    assert sample.final.comparison.gold.message.endswith("golds.jsonl, not run again)")
    assert REWARD.verdict(sample, settings).outcome == "gold_error"


def test_a_gold_of_another_content_is_run_anew_and_the_database_named(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = recorded(root, GoldResult(Status.ERROR, message="no such table: item"))
    connection = sqlite3.connect(root / "shop.sqlite")
    connection.executescript("INSERT INTO item VALUES ('c')")
    connection.close()
    with caplog.at_level(logging.WARNING, logger="verl_sql.database"):
        assert score(root, gold_cache=file)["outcome"] == "match"
    (said,) = [record.message for record in caplog.records if "stale" in record.message]
    assert "shop.sqlite" in said


def test_a_file_that_is_not_there_is_refused(root: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no file of gold results"):
        score(root, gold_cache=str(root / "nowhere.jsonl"))


def test_lines_of_before_allowed_was_kept_are_read(root: Path) -> None:
    fields = {name: value for name, value in asdict(TIMED_OUT).items() if name != "allowed"} | {"seconds": 20.1}
    line = {"database": "shop", "content": content_digest(root / "shop.sqlite"), "sql": GOLD, **fields}
    (root / "old.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    assert score(root, gold_cache=str(root / "old.jsonl"), timeout=20)["outcome"] == "gold_error"
