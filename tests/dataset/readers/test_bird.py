"""BIRD's layouts: ids, chains, extra keys, dated archive folders."""

import json
from pathlib import Path

import pytest

from verl_sql.dataset.readers.bird import question_file, read_bird
from verl_sql.dataset.readers.records import MissingField

RECORD = {"db_id": "d", "question": " Who? ", "evidence": "e", "SQL": " SELECT 1 ;\n"}


def test_fields_chain_and_details(bird_root: Path) -> None:
    examples = list(read_bird(bird_root, "train"))
    assert (examples[12].question_id, examples[12].gold_chain) == ("112", "WITH a AS (SELECT 1) SELECT 1")
    assert examples[13].details == {"template": "long", "nested": {"a": [1, None]}}
    assert (examples[0].source, examples[0].split, examples[0].difficulty) == ("bird", "train", "simple")


def test_train_has_no_ids(tmp_path: Path) -> None:
    (tmp_path / "train.json").write_text(json.dumps([RECORD, RECORD | {"evidence": None}]))
    examples = list(read_bird(tmp_path, "train"))
    assert [e.question_id for e in examples] == ["0", "1"]
    assert (examples[0].question, examples[0].gold_sql, examples[1].evidence) == ("Who?", "SELECT 1", "")


@pytest.mark.parametrize(
    ("path", "split"),
    [
        ("dev/dev.json", "dev"),
        ("dev.json", "dev"),
        ("dev_20240627/dev.json", "dev"),
        ("minidev/MINIDEV/mini_dev_sqlite.json", "mini_dev"),
        ("unseen/unseen.json", "unseen"),
    ],
)
def test_layouts(tmp_path: Path, path: str, split: str) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("[]")
    assert question_file(tmp_path, split) == file


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"dev\.json"):
        list(read_bird(tmp_path, "dev"))
    (tmp_path / "dev.json").write_text('[{"question": "x", "db_id": "d"}]')
    with pytest.raises(MissingField, match="record 0 has no SQL or query or sql; it has question, db_id"):
        list(read_bird(tmp_path, "dev"))


def test_real_files(shared_dir: Path) -> None:
    examples = list(read_bird(shared_dir / "data/bird", "dev"))
    assert len(examples) == 1534
    assert examples[-1].question_id == "1533"
    assert sum(e.difficulty == "challenging" for e in examples) == 145
    train = list(read_bird(shared_dir / "data/bird/train", "mini_train"))
    assert len(train) == 1000
    assert all(e.evidence is not None for e in train)
