"""The scripts of data_prep/ as a user runs them, on real questions."""

import json
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
    assert counts == {"gold_empty": 49, "gold_null": 2, "tied_limit": 42, "nested_tie": 4}
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
