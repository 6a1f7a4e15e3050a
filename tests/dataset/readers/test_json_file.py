"""Reading large JSON a record at a time."""

import json
from pathlib import Path

import pytest

from verl_sql.dataset.readers import json_file
from verl_sql.dataset.readers.json_file import read_records

RECORDS = [{"a": i, "text": 'x"],[{é' * i, "nested": {"b": [i, None]}} for i in range(50)]


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
def test_arrays_in_any_chunking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, indent: int | None
) -> None:
    monkeypatch.setattr(json_file, "CHUNK", chunk)
    (tmp_path / "a.json").write_text(json.dumps(RECORDS, indent=indent, ensure_ascii=False), encoding="utf-8")
    assert list(read_records(tmp_path / "a.json")) == RECORDS


def test_lines_bom_and_blank_lines(tmp_path: Path) -> None:
    text = "\ufeff" + "\n\n".join(json.dumps(record) for record in RECORDS) + "\n"
    (tmp_path / "a.jsonl").write_text(text, encoding="utf-8")
    assert list(read_records(tmp_path / "a.jsonl")) == RECORDS


@pytest.mark.parametrize("text", ["", "[]", " [ ] \n"])
def test_empty_files(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    assert list(read_records(tmp_path / "a.json")) == []


@pytest.mark.parametrize(
    "text", ['[{"a": 1}, {"a": ', '[{"a": 1}] trailing', "version https://git-lfs.github.com/spec/v1"]
)
def test_broken_files_say_where(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ValueError, match=r"a\.json: not JSON after record"):
        list(read_records(tmp_path / "a.json"))


def test_records_must_be_objects(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"a": 1}, [2]]')
    with pytest.raises(ValueError, match="record 2 is no object but list"):
        list(read_records(tmp_path / "a.json"))
