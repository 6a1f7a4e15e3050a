"""`verl-sql doctor`: what each check says, and the exit status of the whole."""

import importlib.util
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from verl_sql.cli import build_app
from verl_sql.integration import health
from verl_sql.integration.health import State
from verl_sql.integration.versions import PINS

HAS_VERL = importlib.util.find_spec("verl") is not None


@pytest.fixture
def db_root(tmp_path: Path) -> Path:
    """Two databases in folders of their own."""
    for name in ("concert", "pets"):
        (tmp_path / name).mkdir()
        with sqlite3.connect(tmp_path / name / f"{name}.sqlite") as connection:
            connection.execute("CREATE TABLE t (a)")
    return tmp_path


@pytest.mark.parametrize(
    ("version", "state"),
    [((3, 10, 9), State.FIX), ((3, 11, 0), State.OK), ((3, 12, 8), State.OK), ((3, 13, 0), State.FIX)],
)
def test_python_range(version: tuple[int, int, int], state: State) -> None:
    check = health.check_python(version)
    assert check.state is state
    assert ".".join(map(str, version)) in check.text


def test_versions_name_the_missing_the_wrong_and_the_right(monkeypatch: pytest.MonkeyPatch) -> None:
    installed = {"verl": "0.9.0", "torch": PINS["cpu"]["torch"] + "+cpu"}
    monkeypatch.setattr(health, "installed_version", installed.get)
    checks = {check.name: check for check in health.check_versions("cpu")}
    assert set(checks) == set(PINS["cpu"])
    assert checks["torch"].state is State.OK
    assert checks["verl"].state is State.FIX
    assert "0.9.0 installed, run with 0.9.1" in checks["verl"].text
    assert checks["ray"].text.startswith("not installed")
    assert "recipes/setup.sh" in checks["ray"].text


def test_database_root_is_counted(db_root: Path) -> None:
    check = health.check_database_root(str(db_root))
    assert (check.state, check.text) == (State.OK, f"{db_root}, databases: 2")


def test_database_root_from_the_environment(db_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERL_SQL_DB_ROOT", str(db_root))
    assert health.check_database_root(None).state is State.OK
    monkeypatch.delenv("VERL_SQL_DB_ROOT")
    assert health.check_database_root(None).state is State.NOTE


def test_database_root_that_is_missing_empty_or_holds_something_else(db_root: Path, tmp_path: Path) -> None:
    assert "is not a folder" in health.check_database_root(str(tmp_path / "nowhere")).text
    (tmp_path / "void").mkdir()
    assert "holds no database" in health.check_database_root(str(tmp_path / "void")).text
    (db_root / "pets" / "pets.sqlite").write_text("version https://git-lfs.example/spec/v1")
    check = health.check_database_root(str(db_root))
    assert check.state is State.FIX
    assert "1 of 2 are no readable SQLite files: pets" in check.text


@pytest.mark.parametrize(
    ("seen", "state", "text"),
    [
        (None, State.FIX, "could not be looked at: Killed"),
        ({"loaded": False, "error": "ImportError: x", "registrations": {}}, State.FIX, "ImportError: x"),
        ({"loaded": False, "error": "", "registrations": {}}, State.FIX, "VERL_USE_EXTERNAL_PLUGINS"),
        ({"loaded": True, "error": "", "registrations": {"a": True, "b": False}}, State.FIX, "lack: b"),
        ({"loaded": True, "error": "", "registrations": {"a": True}}, State.OK, "registered: a"),
    ],
)
def test_what_the_probe_saw(seen: dict[str, object] | None, state: State, text: str) -> None:
    check = health._judge_probe("plugin", seen, "Killed")
    assert check.state is state
    assert text in check.text


@pytest.mark.parametrize(
    ("lines", "telling"),
    [
        (
            ["Traceback:", "ModuleNotFoundError: No module named 'x'", "    @ 0x7f1f (unknown)", ""],
            "ModuleNotFoundError",
        ),
        (["starting", "Killed", ""], "Killed"),
        ([""], "it printed nothing"),
    ],
)
def test_telling_line(lines: list[str], telling: str) -> None:
    assert health.telling_line(lines).startswith(telling)


def test_every_line_is_ok_note_or_fix_and_the_status_says_which(db_root: Path) -> None:
    result = CliRunner().invoke(build_app(), ["doctor", "--quick", "--db-root", str(db_root)])
    lines = result.output.splitlines()
    assert {line.split()[0] for line in lines} <= {"ok", "note", "fix"}
    assert f"ok    database root: {db_root}, databases: 2" in lines
    assert result.exit_code == int(any(line.startswith("fix ") for line in lines))


def test_unknown_profile_is_refused() -> None:
    result = CliRunner().invoke(build_app(), ["doctor", "--profile", "tpu"])
    assert result.exit_code == 2


@pytest.mark.skipif(HAS_VERL, reason="this is what a core install is told")
def test_core_install_is_told_how_to_install() -> None:
    result = CliRunner().invoke(build_app(), ["doctor", "--profile", "cpu"])
    assert result.exit_code == 1
    assert "fix   torch: not installed" in result.output
    assert "fix   plugin: cannot load: torch, verl, ray not installed; run `bash recipes/setup.sh`" in result.output


@pytest.mark.slow
@pytest.mark.skipif(not HAS_VERL, reason="verl is not installed")
def test_plugin_is_seen_by_a_ray_worker() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "from verl_sql.cli import main; main()", "doctor", "--profile", "cpu"],
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert re.search(r"^ok    plugin: loaded by verl; registered: .*platform cpu", done.stdout, re.MULTILINE)
    assert re.search(r"^ok    plugin in a Ray worker: loaded by verl; .*platform cpu", done.stdout, re.MULTILINE)
    assert done.returncode == 0
