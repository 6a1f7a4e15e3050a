"""The sample of look-ups: right golds, spellings nobody can guess, databases of the tests' own, the same every time."""

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from verl_sql.dataset.sample.lookups import SPELLINGS, LookupSizes, write_lookups

SIZES = LookupSizes(cold_start=300, train=40, test=40, unseen=20, variants=2, test_variants=1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("lookups")
    assert write_lookups(out, 3, SIZES) == {"cold_start": 300, "train": 40, "test": 40, "unseen": 20}
    return out


def rows(folder: Path, split: str) -> list[dict[str, Any]]:
    return json.loads((folder / split / f"{split}.json").read_text(encoding="utf-8"))


def test_golds_hold_the_stored_name_and_answer(folder: Path) -> None:
    for split, home in (("cold_start", "train"), ("train", "train"), ("test", "test"), ("unseen", "unseen")):
        for row in rows(folder, split):
            path = folder / home / f"{home}_databases" / row["db_id"] / f"{row['db_id']}.sqlite"
            connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
            assert connection.execute(row["SQL"]).fetchall() not in ([], [(0,)], [(None,)])
            connection.close()
            assert row["asked"] in row["question"]
            if row["asked"]:
                assert f"'{row['stored']}'" in row["SQL"]
                assert SPELLINGS[row["exposure"]](row["asked"]) == row["stored"]


def test_spellings_are_mixed(folder: Path) -> None:
    styles = Counter(row["exposure"] for row in rows(folder, "cold_start") if row["asked"])
    assert set(styles) == set(SPELLINGS)
    assert 0.45 < styles["as asked"] / styles.total() < 0.75


def test_test_databases_are_of_their_own(folder: Path) -> None:
    trained = {row["db_id"] for split in ("cold_start", "train") for row in rows(folder, split)}
    tested = {row["db_id"] for split in ("test", "unseen") for row in rows(folder, split)}
    assert trained & tested == set()


def test_the_same_seed_gives_the_same_files(folder: Path, tmp_path: Path) -> None:
    write_lookups(tmp_path, 3, SIZES)
    for split in ("cold_start", "test"):
        assert (tmp_path / split / f"{split}.json").read_bytes() == (folder / split / f"{split}.json").read_bytes()
