"""Known errors by id, and repeated examples."""

from pathlib import Path

import pytest

from verl_sql.dataset.example import Example
from verl_sql.dataset.filters.duplicates import DuplicateFilter
from verl_sql.dataset.filters.errata import ErrataFilter
from verl_sql.dataset.reasons import Finding, Reason


def example(number: str, question: str = "How many?", sql: str = "SELECT 1", db_id: str = "d") -> Example:
    return Example("bird", "dev", number, db_id, question, "", sql)


def test_lists_by_name(tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text('{"_source": "somewhere", "a": [1, 2], "b": ["2"]}')
    everything = ErrataFilter.from_file(tmp_path / "e.json")
    assert everything.findings(example("2")) == [Finding(Reason.ERRATUM, "a"), Finding(Reason.ERRATUM, "b")]
    assert everything.findings(example("3")) == []
    assert ErrataFilter.from_file(tmp_path / "e.json", ["b"]).findings(example("1")) == []
    with pytest.raises(KeyError):
        ErrataFilter.from_file(tmp_path / "e.json", ["c"])


def test_real_lists(shared_dir: Path) -> None:
    everything = ErrataFilter.from_file(shared_dir / "data/bird/errata_ids.json")
    assert Finding(Reason.ERRATUM, "cidr2026_jin_minidev_table2_18") in everything.findings(example("877"))


def test_duplicates_name_the_earlier_one() -> None:
    seen = DuplicateFilter()
    assert seen.findings(example("1")) == []
    assert seen.findings(example("2", question=" how  MANY?", sql="SELECT 1;")) == [
        Finding(Reason.DUPLICATE, "same as dev/1")
    ]
    assert seen.findings(example("3", db_id="e")) == []
    assert seen.findings(example("4", sql="SELECT 2")) == []
