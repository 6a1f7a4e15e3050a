"""The bundled sample: sound questions, splits that share nothing, the same files from the same seed."""

import csv
import json
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from verl_sql.dataset.sample import SampleSizes, write_sample
from verl_sql.dataset.sample.declarations import SEEN, UNSEEN
from verl_sql.dataset.sample.templates import TEMPLATES, Exposure
from verl_sql.sqltext.chain import prefix_sql, split_chain

SIZES = SampleSizes(cold_start=300, train=120, dev=40, test=80, unseen=40)
SPLITS = ("cold_start", "train", "dev", "test", "unseen")


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small sample from seed 3."""
    folder = tmp_path_factory.mktemp("sample")
    assert write_sample(folder, 3, SIZES) == {"cold_start": 300, "train": 120, "dev": 40, "test": 80, "unseen": 40}
    return folder


def questions(sample: Path, split: str) -> list[dict[str, str]]:
    """The records of one split."""
    return json.loads((sample / split / f"{split}.json").read_text(encoding="utf-8"))


def database(sample: Path, db_id: str) -> sqlite3.Connection:
    """A database of the sample."""
    (path,) = sample.glob(f"*/*_databases/{db_id}/{db_id}.sqlite")
    return sqlite3.connect(path)


@pytest.mark.parametrize("split", SPLITS)
def test_gold_and_chain_agree_and_flaws_are_wrong(sample: Path, split: str) -> None:
    for row in questions(sample, split):
        connection = database(sample, row["db_id"])
        gold = set(connection.execute(row["SQL"]).fetchall())
        assert gold == set(connection.execute(row["cocte"]).fetchall())
        assert gold
        if row["cocte_flawed"]:
            assert gold != set(connection.execute(row["cocte_flawed"]).fetchall())


def test_every_prefix_of_a_chain_executes(sample: Path) -> None:
    for row in questions(sample, "test"):
        chain = split_chain(row["cocte"])
        assert chain.steps
        for step in chain.steps:
            database(sample, row["db_id"]).execute(prefix_sql(chain, step.index)).fetchall()


def test_no_chain_is_in_two_splits(sample: Path) -> None:
    trained = {(r["db_id"], r["cocte"]) for s in ("cold_start", "train") for r in questions(sample, s)}
    dev = {(r["db_id"], r["cocte"]) for r in questions(sample, "dev")}
    test = {(r["db_id"], r["cocte"]) for r in questions(sample, "test")}
    assert not trained & dev
    assert not trained & test
    assert not dev & test


def test_no_question_is_asked_twice(sample: Path) -> None:
    asked = Counter((r["db_id"], r["question"]) for split in SPLITS for r in questions(sample, split))
    assert max(asked.values()) == 1


def test_exposure_is_kept(sample: Path) -> None:
    exposures = {split: {r["exposure"] for r in questions(sample, split)} for split in SPLITS}
    assert exposures["cold_start"] == {Exposure.COLD_START}
    assert exposures["train"] == {Exposure.COLD_START, Exposure.RL_ONLY}
    assert exposures["test"] == set(Exposure)
    seen = {d.db_id for d in SEEN}
    assert {r["db_id"] for r in questions(sample, "train")} <= seen
    assert {r["db_id"] for r in questions(sample, "unseen")} == {d.db_id for d in UNSEEN}


def test_same_seed_same_files(sample: Path, tmp_path: Path) -> None:
    write_sample(tmp_path, 3, SIZES)
    for path in sample.rglob("*"):
        if path.is_file() and path.suffix in {".json", ".csv"}:
            assert path.read_bytes() == (tmp_path / path.relative_to(sample)).read_bytes(), path.name
    for old in sample.rglob("*.sqlite"):
        new = tmp_path / old.relative_to(sample)
        assert list(sqlite3.connect(old).iterdump()) == list(sqlite3.connect(new).iterdump())


def test_another_seed_another_sample(sample: Path, tmp_path: Path) -> None:
    write_sample(tmp_path, 4, SIZES)
    assert questions(sample, "test") != questions(tmp_path, "test")


def test_databases_have_what_real_ones_have(sample: Path) -> None:
    names = {t.name for d in SEEN for t in d.tables} | {c.name for d in SEEN for t in d.tables for c in t.columns}
    assert {"order", "match", "#_fans", "%_Change_2007", "School Name", "A3"} <= names
    connection = database(sample, "school")
    assert connection.execute("PRAGMA foreign_key_list(satscores)").fetchall()
    assert connection.execute("SELECT count(*) FROM schools WHERE enr IS NULL").fetchone()[0] > 0
    (file,) = sample.glob("train/train_databases/bank/database_description/account.csv")
    rows = csv.DictReader(file.open(encoding="utf-8-sig"))
    described = {row["original_column_name"]: row["column_description"] for row in rows}
    assert described["A3"] == "region"
    assert described["account_id"] == ""


def test_odd_names_come_with_evidence(sample: Path) -> None:
    odd = [r for r in questions(sample, "cold_start") if "`#_fans`" in r["SQL"]]
    assert odd
    assert all("number of fans refers to `#_fans`" in r["evidence"] for r in odd)


def test_databases_that_have_no_more_to_ask_end_the_drawing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("verl_sql.dataset.sample.writer._MAX_DRAWS_A_QUESTION", 0)
    with pytest.raises(RuntimeError, match="only 0 of 300 distinct questions could be drawn for train"):
        write_sample(tmp_path, 0, SIZES)


def test_every_template_is_drawn(sample: Path) -> None:
    drawn = {r["template"] for split in SPLITS for r in questions(sample, split)}
    assert drawn == set(TEMPLATES)
