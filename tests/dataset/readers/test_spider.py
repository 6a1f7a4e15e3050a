"""Spider's layout: two train files, no ids, its own parse left out."""

import json
from pathlib import Path

import pytest

from verl_sql.dataset.readers.spider import read_spider

RECORD = {
    "db_id": "d",
    "query": "SELECT 1",
    "question": "One?",
    "query_toks": ["SELECT", "1"],
    "query_toks_no_value": ["select", "value"],
    "question_toks": ["One", "?"],
    "sql": {"select": [False, []]},
    "hardness": "easy",
}


def test_train_joins_two_files_and_names_positions(tmp_path: Path) -> None:
    (tmp_path / "train_spider.json").write_text(json.dumps([RECORD, RECORD]))
    (tmp_path / "train_others.json").write_text(json.dumps([RECORD]))
    examples = list(read_spider(tmp_path, "train"))
    assert [e.question_id for e in examples] == ["train_spider-0", "train_spider-1", "train_others-0"]
    assert examples[0].gold_sql == "SELECT 1"
    assert examples[0].details == {"hardness": "easy"}


def test_train_others_may_be_missing_but_not_the_first(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"train_spider\.json does not exist"):
        list(read_spider(tmp_path, "train"))
    (tmp_path / "train_spider.json").write_text(json.dumps([RECORD]))
    assert len(list(read_spider(tmp_path, "train"))) == 1


def test_real_dev(shared_dir: Path) -> None:
    examples = list(read_spider(shared_dir / "data/spider_dev", "dev"))
    assert len(examples) == 972
    assert examples[0].question_id == "0"
    assert len({e.db_id for e in examples}) == 19
