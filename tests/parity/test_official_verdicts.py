"""Agreement with the recorded verdicts of the official evaluators, through `verl-sql score`, on every recorded pair.

A pair may differ only in the fields that `known_differences.jsonl` lists for it, with the reason beside it, and must
differ there. A recorded null (QATCH's classes were not run on a query that failed) says nothing and is not compared.
"""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from verl_sql.commands.score import score_file
from verl_sql.database.comparators import VALUE_KEYS, order_matters

RECORDED = {
    "bird_set": "bird_ex",
    "test_suite": "ts_eq",
    "soft_f1": "soft_f1",
    "cp": "cp_raw",
    "cr": "cr_raw",
    "tc": "tc_raw",
}
TOLERANCE = 1e-9
DEADLINE = 600.0
"""Seconds a query may run: no verdict may depend on how busy the machine is."""
DIFFERENCES = Path(__file__).with_name("known_differences.jsonl")

Record = dict[str, Any]


def read_lines(path: Path) -> list[Record]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def known_differences() -> dict[str, set[str]]:
    return {entry["pair_id"]: set(entry["fields"]) for entry in read_lines(DIFFERENCES)}


def scored(pairs: Path, roots: list[Path], out: Path, db_id: str | None = None) -> list[Record]:
    summary = score_file(pairs, roots, out, VALUE_KEYS, workers=2, timeout=DEADLINE, db_id=db_id)
    assert summary.bad == 0
    return read_lines(out)


def differing_fields(official: Record, ours: Record) -> set[str]:
    return {
        field
        for field, recorded in RECORDED.items()
        if official[recorded] is not None and not agree(official[recorded], ours[field])
    }


def agree(recorded: float | str, value: float | None) -> bool:
    return not isinstance(recorded, str) and value is not None and abs(recorded - value) <= TOLERANCE


@pytest.fixture(scope="module")
def edge_pairs(shared_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Record], list[Record]]:
    """The hand-made pairs: recorded verdicts, and our scores."""
    folder = tmp_path_factory.mktemp("edge")
    connection = sqlite3.connect(folder / "edge.sqlite")
    connection.executescript((shared_dir / "parity" / "edge_db.sql").read_text(encoding="utf-8"))
    connection.close()
    pairs = shared_dir / "parity" / "edge_pairs.jsonl"
    return read_lines(pairs), scored(pairs, [folder], folder / "out.jsonl", "edge")


def test_edge_pairs_agree_but_for_the_listed_ones(edge_pairs: tuple[list[Record], list[Record]]) -> None:
    official, ours = edge_pairs
    assert [line["pair_id"] for line in ours] == [line["pair_id"] for line in official]
    allowed = known_differences()
    for recorded, line in zip(official, ours, strict=True):
        assert differing_fields(recorded, line) <= allowed.get(recorded["pair_id"], set()), (recorded, line)


def test_listed_pairs_do_differ(edge_pairs: tuple[list[Record], list[Record]]) -> None:
    differ = {r["pair_id"]: differing_fields(r, line) for r, line in zip(*edge_pairs, strict=True)}
    nulls = {r["pair_id"]: {f for f, name in RECORDED.items() if r[name] is None} for r in edge_pairs[0]}
    for pair_id, fields in known_differences().items():
        assert fields & set(RECORDED) <= differ[pair_id] | nulls[pair_id]
        assert differ[pair_id]


def test_every_listed_difference_has_a_reason() -> None:
    entries = read_lines(DIFFERENCES)
    assert len({entry["pair_id"] for entry in entries}) == len(entries)
    assert all(len(entry["reason"]) > 40 for entry in entries)


def test_model_predictions_agree_without_exception(shared_dir: Path, tmp_path: Path) -> None:
    pairs = shared_dir / "parity" / "pairs.jsonl"
    roots = [shared_dir / "data" / "spider_dev", shared_dir / "data" / "bird"]
    official = read_lines(pairs)
    ours = scored(pairs, roots, tmp_path / "out.jsonl")
    assert [line["pair_id"] for line in ours] == [record["pair_id"] for record in official]
    wrong = [(r["pair_id"], f) for r, line in zip(official, ours, strict=True) if (f := differing_fields(r, line))]
    assert wrong == []
    assert all(line["gold_status"] == "ok" for line in ours)
    rows = {r["pair_id"]: r["n_pred_rows"] for r in official if r["pred_status"] == "ok"}
    succeeded = {line["pair_id"] for line in ours if line["pred_status"] == "ok"}
    assert succeeded <= rows.keys()
    # What is left is a lone comment, which SQLite takes for a query without rows and the executor for an error.
    assert [rows[pair_id] for pair_id in rows.keys() - succeeded] == [0]


def test_the_order_counts_where_the_official_code_says_so(shared_dir: Path) -> None:
    for record in read_lines(shared_dir / "parity" / "pairs.jsonl"):
        assert order_matters(record["gold"]) == record["ts_order_matters"], record["pair_id"]
