"""The pins: one place, read by setup.py, the set-up script and the doctor."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from verl_sql.integration import versions

FILE = Path(versions.__file__)


@pytest.mark.parametrize("profile", ["cpu", "gpu"])
def test_every_pin_is_exact(profile: str) -> None:
    lines = versions.requirements(profile)
    assert f"verl=={versions.VERL['verl']}" in lines
    pinned = [line for line in lines if "==" in line]
    assert len(pinned) == len(versions.PINS[profile])
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", line) for line in pinned)


def test_overrides_drop_the_cuda_builds_on_every_python() -> None:
    lines = versions.overrides().splitlines()
    assert [line.split(" ; ")[0] for line in lines] == list(versions.DROPPED_ON_CPU)
    assert {line.split(" ; ")[1] for line in lines} == {"python_version < '3'"}


def test_file_runs_alone_as_the_setup_script_runs_it() -> None:
    def printed(what: str) -> str:
        return subprocess.run([sys.executable, "-I", FILE, what], capture_output=True, text=True, check=True).stdout

    assert printed("torch") == versions.PINS["cpu"]["torch"] + "\n"
    assert printed("overrides") == versions.overrides()
