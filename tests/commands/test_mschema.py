"""`verl-sql mschema`: prints, reports, and fails with one sentence."""

import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner

from verl_sql.cli import build_app


@pytest.fixture
def database(tmp_path: Path) -> Path:
    file = tmp_path / "d.sqlite"
    sqlite3.connect(file).executescript("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT); INSERT INTO t VALUES (1, 'x')")
    folder = tmp_path / "database_description"
    folder.mkdir()
    (folder / "t.csv").write_text("original_column_name,column_description\na,number\nz,none\n")
    return file


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(build_app(), ["mschema", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_prints_m_schema_by_default(database: Path) -> None:
    code, out, _ = run("--db", str(database))
    assert code == 0
    assert out.startswith("【DB_ID】 d\n【Schema】\n# Table: t\n[\n(a:INTEGER, Primary Key, Examples: [1]),")


def test_descriptions_and_their_problems(database: Path) -> None:
    code, out, err = run("--db", str(database), "--descriptions", str(database.parent / "database_description"))
    assert code == 0
    assert "(a:INTEGER, number, Primary Key, Examples: [1])" in out
    assert err == "t.z: described, but there is no such column\n"


@pytest.mark.parametrize(
    ("form", "part"), [("ddl", "CREATE TABLE"), ("enriched", "1 distinct"), ("compact", "t(a, b)")]
)
def test_forms(database: Path, form: str, part: str) -> None:
    assert part in run("--db", str(database), "--form", form)[1]


def test_no_such_file_and_no_database(database: Path) -> None:
    code, out, err = run("--db", str(database.parent / "gone.sqlite"))
    assert (code, out) == (1, "")
    assert "does not exist" in err
    code, _, err = run("--db", str(database.parent / "database_description" / "t.csv"))
    assert code == 1
    assert "not a database" in err
