"""The documents are true: paths, commands, verbs and links in them exist, and nothing that exists is left out."""

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from verl_sql.cli import build_app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
DOCUMENTS = [path for folder in (".", "docs", "recipes") for path in sorted((ROOT / folder).glob("*.md"))]
VERBS = sorted(typer.main.get_command(build_app()).commands)  # type: ignore[attr-defined]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def file_tree() -> list[str]:
    """The paths of README's commented file tree; a line is two spaces a level, a path, and what it is for."""
    block = next(body for language, body in FENCE.findall(README) if body.startswith("verl_sql/"))
    found: list[str] = []
    parents: list[str] = []
    for line in block.splitlines():
        indent, name = (len(line) - len(line.lstrip())) // 2, line.split()[0]
        parents = [*parents[:indent], name]
        found.append("".join(parents))
    return found


def commands(text: str) -> list[list[str]]:
    """The commands of a document's bash blocks, as words; comments and continued lines are taken care of."""
    blocks = [body.replace("\\\n", " ") for language, body in FENCE.findall(text) if language == "bash"]
    return [words for body in blocks for line in body.splitlines() if (words := shlex.split(line, comments=True))]


@pytest.mark.parametrize("path", file_tree())
def test_path_of_the_file_tree_exists(path: str) -> None:
    assert (ROOT / path).exists()
    assert path.endswith("/") == (ROOT / path).is_dir()


def test_file_tree_shows_every_room_recipe_and_reward() -> None:
    shown = set(file_tree())
    rooms = {f"verl_sql/{path.parent.name}/" for path in ROOT.glob("verl_sql/*/__init__.py")}
    files = {
        f"{path.parent.name}/{path.name}" for room in ("recipes", "reward_fns") for path in ROOT.glob(f"{room}/*.*")
    }
    scripts = {f"data_prep/{path.name}" for path in ROOT.glob("data_prep/*.py")}
    wanted = {path for path in rooms | files | scripts if not path.endswith("__init__.py")}
    assert wanted - shown == set()


def test_scripts_that_the_documents_run_exist() -> None:
    found = 0
    for document in DOCUMENTS:
        for words in commands(document.read_text(encoding="utf-8")):
            if "bash" not in words and "python" not in words:
                continue
            scripts = [word for word in words if re.fullmatch(r"[\w./-]+\.(sh|py)|\.ci/run", word) and word[0] != "/"]
            found += len(scripts)
            for script in scripts:
                assert (ROOT / script).is_file(), f"{document.name}: {script}"
    assert found >= 2


def test_verbs_are_documented_and_documented_verbs_exist() -> None:
    mentioned = set(re.findall(r"verl-sql ([a-z][a-z-]*)", README))
    assert mentioned == set(VERBS)


def test_links_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in re.findall(r"\]\(([^)#\s]+)", document.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_changelog_has_a_place_for_what_comes() -> None:
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"


def test_the_two_commands_stand_at_the_top() -> None:
    first = commands(README)[:2]
    assert [words[:2] for words in first] == [["bash", "recipes/reward_sql_grpo.sh"], ["bash", "tests/run.sh"]]
