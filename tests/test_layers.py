"""The house rules of imports: arrows run one way, and verl, Ray and vLLM are imported where they belong only."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

KNOWS = {
    "sqltext": set(),
    "database": {"sqltext"},
    "generation": set(),
    "prompts": set(),
    "schema": {"database", "sqltext"},
    "tools": {"sqltext", "database", "schema"},
    "rewards": {"sqltext", "database", "schema", "tools", "generation", "prompts"},
    "dataset": {"sqltext", "database", "schema", "tools", "prompts", "generation"},
    "prm": {"sqltext", "database", "generation", "schema", "prompts"},
    "evaluation": {"rewards", "prm", "generation", "sqltext", "database", "schema", "dataset"},
    "reward_fns": {"rewards", "prm", "sqltext", "database", "schema"},
}
"""Which rooms a room may import, besides itself; rooms that are not listed may import any."""

OUTSIDERS = {
    "verl": {"integration"},
    "ray": {"integration", "dataset"},
    "vllm": {"integration", "generation"},
    "torch": {"integration", "generation", "prm"},
}
"""Packages that only these rooms may import."""


def modules() -> Iterator[tuple[str, Path]]:
    """Every module, with the room it stands in."""
    for path in sorted((ROOT / "verl_sql").rglob("*.py")):
        parts = path.relative_to(ROOT / "verl_sql").parts
        if len(parts) > 1:
            yield parts[0], path
    for room in ("reward_fns", "data_prep"):
        for path in sorted((ROOT / room).rglob("*.py")):
            yield room, path


def imported(path: Path) -> set[str]:
    """The dotted names that a module imports anywhere, functions included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@pytest.mark.parametrize(("room", "path"), [pytest.param(r, p, id=str(p.relative_to(ROOT))) for r, p in modules()])
def test_imports(room: str, path: Path) -> None:
    names = imported(path)
    ours = {name.split(".")[1] for name in names if name.startswith("verl_sql.")}
    if room in KNOWS:
        assert ours - KNOWS[room] - {room} == set()
    for name in names:
        package = name.partition(".")[0]
        assert package not in OUTSIDERS or room in OUTSIDERS[package], f"{package} imported in {room}"
        assert package not in ("tests", "scripts"), "verl's wheel installs packages of these names"


def test_the_package_itself_imports_nothing_of_verl() -> None:
    assert {name.partition(".")[0] for name in imported(ROOT / "verl_sql" / "__init__.py")} & set(OUTSIDERS) == set()
