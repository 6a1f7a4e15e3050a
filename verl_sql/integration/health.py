"""The checks behind `verl-sql doctor`: is everything there that a training run needs, and if not, what to do."""

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from verl_sql.database.catalog import Catalog
from verl_sql.integration import launch
from verl_sql.integration.versions import PINS, PYTHON

INSTALL = "run `bash recipes/setup.sh` in a checkout and use its .venv"
ENTRY_POINTS = ("verl.plugins", "vllm.general_plugins")
SQLITE_MAGIC = b"SQLite format 3\0"


class State(StrEnum):
    """How a check came out."""

    OK = "ok"
    """As it should be."""
    NOTE = "note"
    """Not checked, or of no weight; says how to have it checked."""
    FIX = "fix"
    """Wrong; says what to do."""


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the doctor's report."""

    name: str
    state: State
    text: str


def detect_profile() -> str:
    """`gpu` if an NVIDIA GPU can be seen, else `cpu`."""
    return "gpu" if gpu_names() or Path("/dev/nvidia0").exists() else "cpu"


def gpu_names() -> list[str]:
    """The GPUs that nvidia-smi lists, by name."""
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", "--query-gpu=name", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return []
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else []


def check_python(version: tuple[int, int, int] = sys.version_info[:3]) -> Check:
    """Whether the interpreter is one that both SQLite's limits and verl can live with."""
    low, high = PYTHON
    shown = ".".join(map(str, version))
    if low <= version[:2] < high:
        return Check("Python", State.OK, shown)
    return Check("Python", State.FIX, f"{shown}: needs 3.11 or 3.12; {INSTALL}")


def check_versions(profile: str) -> Iterator[Check]:
    """Each pinned package against the version that is installed; a build tag such as `+cpu` does not count."""
    for name, wanted in PINS[profile].items():
        found = installed_version(name)
        if found is None:
            yield Check(name, State.FIX, f"not installed (wanted: {wanted}); {INSTALL}")
        elif found.partition("+")[0] != wanted:
            yield Check(name, State.FIX, f"{found} installed, run with {wanted}; {INSTALL}")
        else:
            yield Check(name, State.OK, found)


def installed_version(name: str) -> str | None:
    """The version of an installed distribution, or None."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def check_device(profile: str) -> Check:
    """Which device training would use, and whether torch can use it."""
    if profile == "cpu":
        return Check("device", State.OK, "CPU (no NVIDIA GPU seen); the recipes set VERL_PLATFORM=cpu")
    names = ", ".join(gpu_names()) or "/dev/nvidia0"
    if importlib.util.find_spec("torch") is None:
        return Check("device", State.NOTE, f"GPU: {names}; whether torch can use it shows once torch is installed")
    if _torch_sees_gpu():
        return Check("device", State.OK, f"GPU: {names}")
    return Check(
        "device", State.FIX, f"GPU: {names}, but torch cannot use it; {INSTALL} (PROFILE=gpu), check the driver"
    )


def _torch_sees_gpu() -> bool:
    """torch.cuda.is_available() in a process of its own: the doctor itself stays light, and a driver may crash."""
    program = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", program], capture_output=True).returncode == 0


def check_entry_points() -> Iterator[Check]:
    """Whether this installation declares the plugins that verl and vLLM load."""
    for group in ENTRY_POINTS:
        name = f"entry point {group}"
        if importlib.metadata.entry_points(group=group, name="verl_sql"):
            yield Check(name, State.OK, "declared")
        else:
            yield Check(
                name, State.FIX, "missing: install verl_sql itself (pip install -e .), a path alone will not do"
            )


def check_registrations(profile: str, timeout: float = 300.0) -> Iterator[Check]:
    """Whether verl loads the plugin, in a fresh process and in a worker of a local Ray.

    Args:
        profile: `cpu` or `gpu`; on CPU the platform of that name is asked for.
        timeout: seconds for both together; importing verl twice takes most of them.
    """
    missing = [name for name in ("torch", "verl", "ray") if importlib.util.find_spec(name) is None]
    if missing:
        yield Check("plugin", State.FIX, f"cannot load: {', '.join(missing)} not installed; {INSTALL}")
        return
    found, problem = _probe(profile, timeout)
    for place, title in (("driver", "plugin"), ("worker", "plugin in a Ray worker")):
        yield _judge_probe(title, found.get(place), problem)


def _probe(profile: str, timeout: float) -> tuple[dict[str, Any], str]:
    """Run `integration.probe` under the launcher: what it found, and the end of its output if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        out, log = Path(folder) / "found.json", Path(folder) / "log"
        program = [sys.executable, "-m", launch.__name__, "--log", str(log), "--timeout", str(timeout)]
        program += ["--", sys.executable, "-m", "verl_sql.integration.probe", str(out)]
        env = dict(os.environ) | ({"VERL_PLATFORM": "cpu"} if profile == "cpu" else {})
        done = subprocess.run(program, capture_output=True, text=True, env=env)
        found = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
        lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    if done.returncode == 0:
        return found, ""
    if done.returncode == launch.EXIT_TIMEOUT:
        return found, f"no answer within {timeout:g} s; is the machine busy? It said: {telling_line(lines)}"
    return found, telling_line(lines)


def telling_line(lines: list[str]) -> str:
    """The last line that names an error, else the last that is not blank: stack traces of C++ come after both."""
    spoken = [line.strip() for line in lines if line.strip()]
    errors = [line for line in spoken if re.search(r"[A-Za-z](Error|Exception)\b", line)]
    return (errors or spoken or ["it printed nothing"])[-1]


def _judge_probe(title: str, seen: dict[str, Any] | None, problem: str) -> Check:
    """The line for one place in which the plugin should be loaded."""
    if seen is None:
        return Check(title, State.FIX, f"could not be looked at: {problem}")
    if seen["error"]:
        return Check(title, State.FIX, f"fails to import, which verl hides: {seen['error']}")
    if not seen["loaded"]:
        return Check(title, State.FIX, "verl did not load it; unset VERL_USE_EXTERNAL_PLUGINS or add verl_sql to it")
    absent = [name for name, visible in seen["registrations"].items() if not visible]
    if absent:
        return Check(title, State.FIX, f"loaded, but verl's registries lack: {', '.join(absent)}; {INSTALL}")
    names = ", ".join(seen["registrations"])
    return Check(title, State.OK, f"loaded by verl; registered: {names}" if names else "loaded by verl")


def check_database_root(root: str | None) -> Check:
    """Whether the folder of databases can be read, and how many it holds.

    Args:
        root: the folder; None for the one that VERL_SQL_DB_ROOT names.
    """
    name = "database root"
    chosen = root or os.environ.get("VERL_SQL_DB_ROOT")
    if not chosen:
        return Check(name, State.NOTE, "not checked; pass --db-root or set VERL_SQL_DB_ROOT")
    if not Path(chosen).is_dir():
        return Check(name, State.FIX, f"{chosen} is not a folder; pass another --db-root or set VERL_SQL_DB_ROOT")
    catalog = Catalog(Path(chosen))
    paths = {db_id: catalog.path(db_id) for db_id in catalog.db_ids()}
    if not paths:
        return Check(name, State.FIX, f"{chosen} holds no database; expected e.g. <root>/<db_id>/<db_id>.sqlite")
    bad = sorted(db_id for db_id, path in paths.items() if not _is_sqlite(path))
    if bad:
        shown = ", ".join(bad[:5]) + (", ..." if len(bad) > 5 else "")
        return Check(name, State.FIX, f"{chosen}: {len(bad)} of {len(paths)} are no readable SQLite files: {shown}")
    return Check(name, State.OK, f"{chosen}, databases: {len(paths)}")


def _is_sqlite(path: Path) -> bool:
    """Whether the file can be read and starts as SQLite's files do (an empty file is an empty database)."""
    try:
        with path.open("rb") as file:
            head = file.read(len(SQLITE_MAGIC))
    except OSError:
        return False
    return head in (b"", SQLITE_MAGIC)
