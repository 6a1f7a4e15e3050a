"""The scripts of data_prep/ as a user runs them, on real questions."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from verl_sql.dataset.parquet import RL_SCHEMA, missing_columns, read_rows

ROOT = Path(__file__).parents[2]


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=ROOT, check=False)


def test_spider_dev_counts(shared_dir: Path, tmp_path: Path) -> None:
    done = run("data_prep/spider.py", f"source={shared_dir}/data/spider_dev", f"out={tmp_path}", "splits=[dev]")
    assert done.returncode == 0, done.stderr
    dev = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))["splits"]["dev"]
    counts = {reason: entry["count"] for reason, entry in dev["flagged"].items()}
    assert (dev["questions"], dev["kept"], dev["dropped"]) == (972, 972, {})
    assert counts == {"gold_empty": 49, "gold_null": 2, "tied_limit": 42, "nested_tie": 4, "float_sum": 9}
    assert missing_columns(tmp_path / "dev.parquet", RL_SCHEMA) == []


def test_superhero_as_a_module(shared_dir: Path, tmp_path: Path) -> None:
    done = run(
        *("-m", "verl_sql.data_prep.bird", f"source={shared_dir}/data/bird", f"out={tmp_path}", "splits=[dev]"),
        *("settings.databases=[superhero]", f"errata.dev.file={shared_dir}/data/bird/errata_ids.json"),
    )
    assert done.returncode == 0, done.stderr
    rows = list(read_rows(tmp_path / "dev.parquet"))
    assert len(rows) == 129
    assert "the unique identifier of the superhero" in rows[0]["prompt"][-1]["content"]
    assert "erratum 11" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["source=/nowhere"], "spider: /nowhere/train_spider.json does not exist: is /nowhere the folder of Spider?"),
        ([], "spider: give the dataset's folder: source=…"),
        (["settings.template=none", "source={source}", "splits=[dev]"], "spider: no prompt template 'none'"),
        (["db_root=/nowhere", "source={source}", "splits=[dev]"], "spider: database root /nowhere is not a folder"),
    ],
)
def test_mistakes_end_in_one_sentence(shared_dir: Path, tmp_path: Path, arguments: list[str], sentence: str) -> None:
    filled = [argument.format(source=shared_dir / "data/spider_dev") for argument in arguments]
    done = run("data_prep/spider.py", f"out={tmp_path}", *filled)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


SPIDER = {"db_id": "shop", "query": "SELECT name FROM shop", "question": "Which names?"}
SCRIPTS = {
    "spider_syn": ("dev.json", [{**SPIDER, "SpiderSynQuestion": "Which labels?"}], "dev"),
    "spider_dk": ("Spider-DK.json", [SPIDER | {"type": "1"}], "dev"),
    "spider_realistic": ("spider-realistic.json", [SPIDER], "dev"),
    "kaggledbqa": ("examples/shop_test.json", [SPIDER], "test"),
    "synsql": ("data.json", [{"db_id": "shop", "sql": "SELECT name FROM shop", "question": "Which names?"}], "train"),
    "questions": ("train.json", [SPIDER], "train"),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_other_scripts(tmp_path: Path, name: str) -> None:
    file, records, split = SCRIPTS[name]
    database = tmp_path / "data/databases/shop/shop.sqlite"
    for path in (database, tmp_path / "data" / file):
        path.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "data" / file).write_text(json.dumps(records))
    sqlite3.connect(database).executescript("CREATE TABLE shop (name TEXT); INSERT INTO shop VALUES ('a')")
    where = [
        f"source={tmp_path}/data",
        f"out={tmp_path}/out",
        f"splits=[{split}]",
        f"db_root={tmp_path}/data/databases",
    ]
    done = run(f"data_prep/{name}.py", *where, "workers=1")
    assert done.returncode == 0, done.stderr
    (row,) = read_rows(tmp_path / f"out/{split}.parquet")
    assert row["data_source"] == name
    assert "(name:TEXT, Examples: [a])" in row["prompt"][-1]["content"]


def test_datasets_without_databases(tmp_path: Path) -> None:
    records = [
        {"instruction": "Which a?", "input": "CREATE TABLE t (a INT)", "response": "SELECT a FROM t;", "source": "s"},
        {"instruction": "Which b?", "input": "CREATE TABLE t (a INT)", "response": "SELECT b FROM t", "source": "s"},
    ]
    (tmp_path / "v1.jsonl").write_text("\n".join(json.dumps(record) for record in records))
    done = run("data_prep/text_to_sql_v1.py", f"source={tmp_path}/v1.jsonl", f"out={tmp_path}/v1")
    assert "train: 1 of 2 kept; dropped: gold_uncompilable 1" in done.stdout, done.stderr
    (row,) = read_rows(tmp_path / "v1/train.parquet")
    assert "CREATE TABLE t (a INT)" in row["prompt"][-1]["content"]
    (tmp_path / "all_csv").mkdir()
    (tmp_path / "all_csv/t.csv").write_text("a#b\n1#2\n")
    (tmp_path / "dataset.json").write_text(json.dumps({"t.csv": [{"Question name": "b of 1?", "Answer": "2"}]}))
    done = run("data_prep/crt_qa.py", f"source={tmp_path}", f"out={tmp_path}/crt")
    assert "test: 1 of 1 kept" in done.stdout, done.stderr
    (row,) = read_rows(tmp_path / "crt/test.parquet")
    assert (row["ability"], row["reward_model"]["ground_truth"]) == ("table_qa", "2")
    assert "a | b\n1 | 2" in row["prompt"][-1]["content"]
