"""From questions to parquet: what is dropped and why, the report, and going on after a kill."""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from verl_sql.database.gold_cache import GoldCache
from verl_sql.dataset import build, prepare_job
from verl_sql.dataset.build import Dataset, build_dataset
from verl_sql.dataset.filters.errata import ErrataFilter
from verl_sql.dataset.parquet import read_rows
from verl_sql.dataset.readers.bird import question_file, read_bird
from verl_sql.dataset.reasons import Reason, meanings
from verl_sql.dataset.settings import Settings, settings_from

pytestmark = pytest.mark.usefixtures("one_pool")


def dataset(root: Path, splits: tuple[str, ...] = ("train", "dev"), errata: dict | None = None) -> Dataset:
    return Dataset(
        name="bird",
        description="Made for tests.",
        splits={split: (lambda split=split: read_bird(root, split)) for split in splits},
        files=tuple(question_file(root, split) for split in splits),
        db_root=root,
        errata=errata or {},
    )


def reasons(report: dict, split: str, kind: str) -> dict[str, list[str]]:
    table = report["splits"][split][kind]
    return {reason: [example["question_id"] for example in entry["examples"]] for reason, entry in table.items()}


def test_every_fault_is_dropped_by_its_reason(bird_root: Path, tmp_path: Path) -> None:
    settings = Settings(max_prompt_characters=1500, slow_seconds=19)
    report = build_dataset(dataset(bird_root, ("train",)), settings, tmp_path / "out")
    assert reasons(report, "train", "dropped") == {
        "duplicate": ["101"],
        "no_database": ["111"],
        "gold_error": ["102"],
        "gold_empty": ["103"],
        "gold_null": ["104"],
        "time_dependent": ["109"],
        "random": ["110"],
        "tied_limit": ["105"],
        "unordered_limit": ["107"],
        "long_prompt": ["113"],
    }
    rows = list(read_rows(tmp_path / "out/train.parquet"))
    assert [row["extra_info"]["question_id"] for row in rows] == ["100", "106", "108", "112"]
    assert [row["extra_info"]["index"] for row in rows] == [0, 1, 2, 3]
    assert rows[3]["extra_info"]["gold_chain"] == "WITH a AS (SELECT 1) SELECT 1"
    assert report["splits"]["train"]["questions"] == 14


def test_an_evaluation_split_flags_instead(bird_root: Path, tmp_path: Path) -> None:
    report = build_dataset(dataset(bird_root), Settings(), tmp_path / "out")
    assert reasons(report, "dev", "dropped") == {"gold_error": ["102"]}
    flagged = reasons(report, "dev", "flagged")
    assert flagged["gold_empty"] == ["103"]
    assert flagged["duplicate"] == ["100", "101", "102", "103", "104", "105", "106", "107", "108"][:2] + [
        f"10{i}" for i in range(3, 9)
    ]
    rows = {row["extra_info"]["question_id"]: row for row in read_rows(tmp_path / "out/dev.parquet")}
    assert json.loads(rows["105"]["extra_info"]["details"])["flags"] == ["duplicate", "tied_limit"]


def test_actions_can_be_changed_and_errata_given(bird_root: Path, tmp_path: Path) -> None:
    settings = settings_from({"filters": {"train": {"gold_empty": "ignore", "gold_null": "flag"}}, "limit": 6})
    errata = {"train": ErrataFilter({"list": [100]})}
    report = build_dataset(dataset(bird_root, ("train",), errata), settings, tmp_path / "out")
    assert reasons(report, "train", "dropped") == {
        "erratum": ["100"],
        "duplicate": ["101"],
        "gold_error": ["102"],
        "tied_limit": ["105"],
    }
    assert reasons(report, "train", "flagged") == {"gold_null": ["104"]}
    assert "flags" not in json.loads(next(iter(read_rows(tmp_path / "out/train.parquet")))["extra_info"]["details"])


def test_only_some_databases(bird_root: Path, tmp_path: Path) -> None:
    report = build_dataset(dataset(bird_root, ("train",)), Settings(databases=("gone",)), tmp_path / "out")
    assert report["splits"]["train"]["questions"] == 1
    assert report["splits"]["train"]["kept"] == 0


def test_prompt_and_no_paths(bird_root: Path, tmp_path: Path) -> None:
    settings = settings_from({"template": "compact", "form": "compact", "limit": 1})
    build_dataset(dataset(bird_root, ("train",)), settings, tmp_path / "out")
    (row,) = read_rows(tmp_path / "out/train.parquet")
    assert row["prompt"][0]["content"] == "shop(id, name, price)\nnone; really\nHow many shops?"
    assert str(bird_root) not in json.dumps(row)


def test_card_counts_and_explains(bird_root: Path, tmp_path: Path) -> None:
    build_dataset(dataset(bird_root), Settings(), tmp_path / "out")
    card = (tmp_path / "out/DATASET_CARD.md").read_text(encoding="utf-8")
    assert "| train | 14 | 5 | 9 | 0 |" in card
    assert f"- **gold_empty**: 1 (shop 1). {meanings()['gold_empty']}" in card
    assert "9,007" in card
    assert not (tmp_path / "out/.parts").exists()


def test_reasons_have_meanings() -> None:
    assert set(meanings()) == {str(reason) for reason in Reason}


def test_unknown_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="gold_bad"):
        settings_from({"filters": {"train": {"gold_bad": "drop"}}})
    with pytest.raises(TypeError, match="colour"):
        settings_from({"colour": "red"})
    with pytest.raises(ValueError, match="needs a tokenizer"):
        Settings(max_prompt_tokens=10)


SECONDS = re.compile(rb'"seconds": [^,]+')


def digests(folder: Path) -> dict[str, str]:
    """Digests of the files of a build; the seconds in `golds.jsonl` are all that may vary."""
    written = {f.name: f.read_bytes() for f in folder.iterdir() if f.is_file()}
    written["golds.jsonl"] = SECONDS.sub(b"", written["golds.jsonl"])
    return {name: hashlib.sha256(content).hexdigest() for name, content in written.items()}


def test_parts_of_an_earlier_run_are_taken_up(bird_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "PART_SIZE", 4)
    build_dataset(dataset(bird_root), Settings(), tmp_path / "whole")
    decided: list[int] = []
    original = prepare_job.Preparation.decide

    def failing(self: prepare_job.Preparation, batch: list) -> list:
        decided.append(len(batch))
        if len(decided) == 3:
            raise KeyboardInterrupt
        return original(self, batch)

    monkeypatch.setattr(prepare_job.Preparation, "decide", failing)
    with pytest.raises(KeyboardInterrupt):
        build_dataset(dataset(bird_root), Settings(), tmp_path / "cut")
    build_dataset(dataset(bird_root), Settings(), tmp_path / "cut")
    assert decided == [4, 4, 4, 4, 2, 4, 4, 1]
    assert digests(tmp_path / "cut") == digests(tmp_path / "whole")


@pytest.mark.slow
def test_kill_and_run_again_gives_the_same_bytes(shared_dir: Path, tmp_path: Path) -> None:
    script = Path(__file__).parents[2] / "data_prep/spider.py"
    command = [sys.executable, str(script), f"source={shared_dir}/data/spider_dev", "splits=[dev]", "workers=1"]
    subprocess.run([*command, f"out={tmp_path}/whole"], check=True, capture_output=True)
    process = subprocess.Popen([*command, f"out={tmp_path}/cut"], stderr=subprocess.DEVNULL, start_new_session=True)
    while process.poll() is None and not list((tmp_path / "cut").glob(".parts/*/dev/0*.jsonl")):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "cut/report.json").exists()
    subprocess.run([*command, f"out={tmp_path}/cut"], check=True, capture_output=True)
    assert digests(tmp_path / "cut") == digests(tmp_path / "whole")


def test_a_stratified_sample_of_what_is_kept(bird_root: Path, tmp_path: Path) -> None:
    settings = settings_from({"sample_size": 2, "sample_by": "complexity"})
    report = build_dataset(dataset(bird_root), settings, tmp_path / "out")
    assert report["splits"]["train"]["kept"] == 2
    assert report["splits"]["train"]["dropped"]["not_sampled"]["count"] == 3
    assert report["splits"]["dev"]["kept"] == 8


def test_without_databases_but_with_tables(bird_root: Path, tmp_path: Path) -> None:
    entry = {
        "db_id": "gone",
        "table_names_original": ["t"],
        "column_names_original": [[-1, "*"], [0, "a"]],
        "column_types": ["text", "number"],
        "primary_keys": [],
        "foreign_keys": [],
    }
    (tmp_path / "tables.json").write_text(json.dumps([entry]))
    given = replace(dataset(bird_root, ("train",)), tables=tmp_path / "tables.json")
    report = build_dataset(given, Settings(databases=("gone",)), tmp_path / "out")
    assert report["splits"]["train"]["kept"] == 1
    (row,) = read_rows(tmp_path / "out/train.parquet")
    assert "(a:NUMERIC)" in row["prompt"][-1]["content"]
    assert row["extra_info"]["difficulty"] == "simple"


def test_what_each_gold_gave_is_recorded(bird_root: Path, tmp_path: Path) -> None:
    build_dataset(dataset(bird_root), Settings(timeout=7), tmp_path / "out")
    cache = GoldCache(tmp_path / "out/golds.jsonl")
    lines = (tmp_path / "out/golds.jsonl").read_text(encoding="utf-8").splitlines()
    questions = json.loads((bird_root / "train/train.json").read_text(encoding="utf-8"))
    asked = {q["SQL"].rstrip("; ") for q in questions if q["db_id"] != "gone"}
    asked -= {"SELECT abs(random()) FROM shop", "SELECT date('now'), count(*) FROM shop"}
    assert len(cache) == len(lines) == len(asked)
    shop = bird_root / "train/train_databases/shop/shop.sqlite"
    assert all((found := cache.get(shop, sql)) is not None and found.allowed == 7 for sql in asked)
    failed = cache.get(shop, "SELECT name FROM shops")
    assert failed is not None
    assert (failed.status, failed.message) == ("error", "no such table: shops")
    assert str(tmp_path) not in "".join(lines)


def test_without_databases_there_are_no_golds_to_record(bird_root: Path, tmp_path: Path) -> None:
    build_dataset(replace(dataset(bird_root, ("train",)), db_root=None), Settings(limit=2), tmp_path / "out")
    assert not (tmp_path / "out/golds.jsonl").exists()
