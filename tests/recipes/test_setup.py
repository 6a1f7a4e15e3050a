"""The set-up script: what it refuses in one sentence, and that it does nothing when everything is there."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "recipes" / "setup.sh"


def run_setup(script: Path = SCRIPT, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the script for the CPU set with these variables on top of the environment."""
    env = dict(os.environ) | {"PROFILE": "cpu"} | environment
    return subprocess.run(["bash", str(script)], capture_output=True, text=True, env=env, timeout=120)


def test_unknown_profile(tmp_path: Path) -> None:
    done = run_setup(PROFILE="tpu", VENV=str(tmp_path / "venv"))
    assert (done.returncode, done.stderr) == (1, "verl_sql set-up: PROFILE must be cpu or gpu, not 'tpu'\n")


@pytest.mark.parametrize("version", ["3, 10, 4", "3, 13, 0"])
def test_python_out_of_range(tmp_path: Path, version: str) -> None:
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -c "import sys; sys.version_info = ({version}); $2"\n')
    python.chmod(0o755)
    done = run_setup(PYTHON=str(python), VENV=str(tmp_path / "venv"))
    assert done.returncode == 1
    assert done.stderr.startswith(f"verl_sql set-up: no Python 3.11 or 3.12 with the venv module among: {python}.")
    assert not (tmp_path / "venv").exists()


def test_outside_a_checkout(tmp_path: Path) -> None:
    (tmp_path / "recipes").mkdir()
    shutil.copy(SCRIPT, tmp_path / "recipes")
    done = run_setup(tmp_path / "recipes" / "setup.sh")
    assert done.returncode == 1
    assert "runs in a checkout of the repository only" in done.stderr


def test_cut_short_earlier_and_now_without_a_network(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    (venv / "lib").mkdir(parents=True)
    (venv / "verl_sql.made").write_text(f"{venv}\n")
    done = run_setup(PIP_NO_INDEX="1", PIP_FIND_LINKS="", PYTHON=sys.executable, VENV=str(venv))
    assert done.returncode == 1
    assert f"an earlier set-up of {venv} is incomplete or was moved; making it again" in done.stderr
    assert "could not install" in done.stderr.splitlines()[-1]
    assert (venv / "bin" / "python").exists()
    assert not (venv / "verl_sql.ready").exists()


def test_an_environment_that_is_not_ours_is_left_alone(tmp_path: Path) -> None:
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    done = run_setup(PYTHON=sys.executable, VENV=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("holds no working Python 3.11 or 3.12; move it away")
    assert python.read_text() == "#!/bin/sh\nexit 1\n"


@pytest.mark.skipif(not (Path(sys.prefix) / "verl_sql.ready").exists(), reason="not in an environment it made")
def test_nothing_happens_when_all_is_there() -> None:
    began = time.monotonic()
    profile = os.environ.get("PROFILE", "cpu")
    done = run_setup(PROFILE=profile, VENV=sys.prefix)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    assert time.monotonic() - began < 5
