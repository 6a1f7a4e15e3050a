"""`verl-sql score`: output schema and order, bad lines, layouts, resuming to the same bytes after SIGKILL."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from verl_sql.cli import build_app
from verl_sql.commands.score import ScoreError, Summary, score_file

KEYS = ["pair_id", "gold_status", "pred_status"]
VALUES = ["bird_set", "bag", "ordered", "test_suite", "soft_f1", "cp", "cr", "tc"]


def make_database(path: Path, names: str = "abc") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t(id INTEGER, name TEXT)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", list(enumerate(names)))
    connection.commit()
    connection.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with one database in each layout: BIRD's, Spider's and flat."""
    folder = tmp_path / "root"
    make_database(folder / "dev_databases" / "bird" / "bird.sqlite")
    make_database(folder / "database" / "spider" / "spider.sqlite")
    make_database(folder / "flat.sqlite")
    return folder


def write_pairs(path: Path, pairs: list[Any]) -> Path:
    lines = [pair if isinstance(pair, str) else json.dumps(pair) for pair in pairs]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def pair(pair_id: Any, pred: str, db_id: str = "flat", gold: str = "SELECT name FROM t") -> dict[str, Any]:
    return {"pair_id": pair_id, "db_id": db_id, "gold": gold, "pred": pred}


def read(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def test_output_has_the_schema_and_the_order_of_the_input(root: Path, tmp_path: Path) -> None:
    pairs = [
        pair("b", "SELECT name FROM t", "bird"),
        pair("a", "SELECT nme FROM t", "spider"),
        pair(7, "SELECT name FROM t WHERE id < 2"),
        pair("d", "SELECT name FROM t", gold="SELECT nope FROM t"),
        pair("e", "SELECT name FROM t", gold="SELECT DISTINCT name FROM t ORDER BY name DESC"),
    ]
    out = tmp_path / "new" / "out.jsonl"
    everything = ["bird_set", "bag", "ordered", "test_suite", "soft_f1", "qatch"]
    summary = score_file(write_pairs(tmp_path / "in.jsonl", pairs), [root], out, everything, workers=1)
    assert summary == Summary(scored=5, resumed=0, bad=0)
    lines = read(out)
    assert [line["pair_id"] for line in lines] == ["b", "a", 7, "d", "e"]
    assert all(list(line) == KEYS + VALUES for line in lines)
    assert [(line["gold_status"], line["pred_status"]) for line in lines[:4]] == [
        ("ok", "ok"), ("ok", "error"), ("ok", "ok"), ("error", "ok"),
    ]  # fmt: skip
    assert [lines[0][key] for key in VALUES] == [1.0] * 8
    assert [lines[1][key] for key in VALUES] == [0.0] * 8
    assert [lines[3][key] for key in VALUES] == [0.0] * 5 + [None] * 3
    assert lines[2]["cr"] == pytest.approx(2 / 3)
    assert (lines[4]["bag"], lines[4]["ordered"], lines[4]["test_suite"]) == (1.0, 0.0, 0.0)


def test_a_prediction_without_statement_is_an_empty_result(root: Path, tmp_path: Path) -> None:
    empty = "SELECT name FROM t WHERE 0"
    pairs = [pair(1, "-- nothing", gold=empty), pair(2, "", gold=empty), pair(3, ";"), pair(4, "", gold="SELECT")]
    out = tmp_path / "out.jsonl"
    score_file(write_pairs(tmp_path / "in.jsonl", pairs), [root], out, ["bird_set", "test_suite", "qatch"], workers=1)
    assert [(line["bird_set"], line["test_suite"], line["cp"]) for line in read(out)] == [
        (1.0, 1.0, 1.0), (1.0, 1.0, 1.0), (0.0, 0.0, 0.0), (0.0, 0.0, None),
    ]  # fmt: skip


def test_test_suite_asks_every_variant_of_the_database(root: Path, tmp_path: Path) -> None:
    make_database(root / "database" / "spider" / "spider_1.sqlite", "abcd")
    pairs = [pair(1, "SELECT name FROM t WHERE id < 3", "spider"), pair(2, "SELECT name FROM t WHERE 1", "spider")]
    out = tmp_path / "out.jsonl"
    score_file(write_pairs(tmp_path / "in.jsonl", pairs), [root], out, ["bag", "test_suite"], workers=1)
    assert [(line["bag"], line["test_suite"]) for line in read(out)] == [(1.0, 0.0), (1.0, 1.0)]


def test_bad_lines_are_named_by_number_and_do_not_stop_the_rest(
    root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    good = pair("good", "SELECT name FROM t")
    bad = ["{", "[1]", '{"db_id": "flat"}', {**good, "pred": None}, {**good, "db_id": "nowhere"}]
    pairs = write_pairs(tmp_path / "in.jsonl", [good, *bad, "", {**good, "pair_id": "last"}])
    with pairs.open("ab") as file:
        file.write(b'{"pair_id": "\xff"}\n')
    summary = score_file(pairs, [root], tmp_path / "out.jsonl", ["bird_set"], workers=1)
    assert summary == Summary(scored=2, resumed=0, bad=6)
    assert [line["pair_id"] for line in read(tmp_path / "out.jsonl")] == ["good", "last"]
    said = capfd.readouterr().err
    assert all(f"line {number}: " in said for number in (2, 3, 4, 5, 6, 9))
    assert "pred is missing or not a string (pair_id 'good')" in said
    assert "database 'nowhere' not found" in said
    assert "line 7: " not in said


def test_lines_that_name_no_database_take_the_one_given(root: Path, tmp_path: Path) -> None:
    nameless = {k: v for k, v in pair("n", "SELECT name FROM t").items() if k != "db_id"}
    pairs = write_pairs(tmp_path / "in.jsonl", [nameless, pair("s", "SELECT nope FROM t", "spider")])
    summary = score_file(pairs, [root], tmp_path / "out.jsonl", ["bird_set"], workers=1, db_id="bird")
    assert summary == Summary(scored=2, resumed=0, bad=0)
    assert [line["bird_set"] for line in read(tmp_path / "out.jsonl")] == [1.0, 0.0]
    assert score_file(pairs, [root], tmp_path / "none.jsonl", ["bird_set"], workers=1).bad == 1


def test_roots_are_searched_in_order(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    make_database(other / "flat.sqlite", "xyz")
    make_database(other / "only_here.sqlite")
    pairs = [pair(1, "SELECT 'a'", gold="SELECT name FROM t LIMIT 1"), pair(2, "SELECT name FROM t", "only_here")]
    out = tmp_path / "out.jsonl"
    score_file(write_pairs(tmp_path / "in.jsonl", pairs), [root, other], out, ["bird_set"], workers=1)
    assert [line["bird_set"] for line in read(out)] == [1.0, 1.0]


def many_pairs(n: int) -> list[dict[str, Any]]:
    return [pair(i, f"SELECT name FROM t WHERE id <> {i % 5}") for i in range(n)]


def test_a_partial_output_is_continued_to_the_same_bytes(root: Path, tmp_path: Path) -> None:
    pairs, out = write_pairs(tmp_path / "in.jsonl", ["bad", *many_pairs(40)]), tmp_path / "out.jsonl"
    score_file(pairs, [root], out, ["bird_set", "qatch"], workers=1)
    whole = out.read_bytes()
    for cut in (0, 1, len(whole) // 2, len(whole) - 1, len(whole)):
        out.write_bytes(whole[:cut])
        summary = score_file(pairs, [root], out, ["bird_set", "qatch"], workers=1)
        assert out.read_bytes() == whole
        assert summary == Summary(scored=40 - whole[:cut].count(b"\n"), resumed=whole[:cut].count(b"\n"), bad=1)


def test_another_runs_output_is_not_touched(root: Path, tmp_path: Path) -> None:
    pairs, out = write_pairs(tmp_path / "in.jsonl", many_pairs(3)), tmp_path / "out.jsonl"
    score_file(pairs, [root], out, ["bird_set"], workers=1)
    before = out.read_bytes()
    with pytest.raises(ScoreError, match=r"line 1 of .* is not the score of pair 0 by bag"):
        score_file(pairs, [root], out, ["bag"], workers=1)
    fewer = write_pairs(tmp_path / "fewer.jsonl", many_pairs(2))
    with pytest.raises(ScoreError, match="more lines than there are pairs"):
        score_file(fewer, [root], out, ["bird_set"], workers=1)
    others = write_pairs(tmp_path / "others.jsonl", [pair("x", "SELECT 1")])
    with pytest.raises(ScoreError, match="of another run"):
        score_file(others, [root], out, ["bird_set"], workers=1)
    assert out.read_bytes() == before


def test_killed_in_the_middle_it_goes_on_to_the_same_bytes(root: Path, tmp_path: Path) -> None:
    slow = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 20000) SELECT max(n) + {} FROM c"
    pairs = write_pairs(tmp_path / "in.jsonl", [pair(i, slow.format(i)) for i in range(200)])
    options = ["--pairs", str(pairs), "--db-root", str(root), "--comparators", "bird_set,soft_f1", "--workers", "1"]
    command = [sys.executable, "-c", "from verl_sql.cli import main; main()", "score", *options]
    out = tmp_path / "out.jsonl"
    with subprocess.Popen([*command, "--out", str(out)], stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not (out.exists() and out.stat().st_size) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    killed_at = out.read_bytes().count(b"\n")
    assert 0 < killed_at < 200
    resumed = subprocess.run([*command, "--out", str(out)], capture_output=True, text=True, check=True)
    assert f"{killed_at} found scored already" in resumed.stderr
    whole = tmp_path / "whole.jsonl"
    subprocess.run([*command, "--out", str(whole)], capture_output=True, check=True)
    assert out.read_bytes() == whole.read_bytes()


def test_command_line(root: Path, tmp_path: Path) -> None:
    pairs, out = write_pairs(tmp_path / "in.jsonl", many_pairs(3)), tmp_path / "out.jsonl"
    base = ["score", "--pairs", str(pairs), "--out", str(out), "--workers", "1"]
    wrong_name = CliRunner().invoke(build_app(), [*base, "--db-root", str(root), "--comparators", "birdset"])
    assert wrong_name.exit_code == 2
    assert "no comparator birdset" in wrong_name.output
    wrong_root = CliRunner().invoke(build_app(), [*base, "--db-root", str(root / "nowhere")])
    assert wrong_root.exit_code == 2
    assert "is not a folder" in wrong_root.output
    no_time = CliRunner().invoke(build_app(), [*base, "--db-root", str(root), "--timeout", "0"])
    assert no_time.exit_code == 2
    assert not out.exists()
    done = CliRunner().invoke(build_app(), [*base, "--db-root", str(root), "--timeout", "20"])
    assert done.exit_code == 0
    assert "3 scored, 0 found scored already, 0 bad lines left out" in done.output
    assert list(read(out)[0]) == KEYS + VALUES


def test_a_corrupt_database_is_named_and_counts_as_the_golds_failure(
    root: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (root / "broken.sqlite").write_bytes(b"no database")
    pairs = [pair(1, "SELECT name FROM t", "broken"), pair(2, "SELECT name FROM t")]
    out = tmp_path / "out.jsonl"
    score_file(write_pairs(tmp_path / "in.jsonl", pairs), [root], out, ["bird_set"], workers=1)
    assert [(line["gold_status"], line["bird_set"]) for line in read(out)] == [("error", 0.0), ("ok", 1.0)]
    assert "line 1: database" in capfd.readouterr().err
