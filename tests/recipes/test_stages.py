"""recipes/lib/stages.sh with stages of a moment: what runs, what an earlier run already made, what STAGES asks for."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

LIBRARY = Path(__file__).parents[2] / "recipes" / "lib" / "stages.sh"
RECIPE = """
set -euo pipefail
source LIBRARY
export PROFILE=cpu
PY=PYTHON
RECIPE=three
PARTS=(data policy grpo)
PART[sample]=data
make() { echo "made $1"; echo "$1 $LR" >"$OUT/$1/file"; }
fragile() { echo whole >"$OUT/$1/file"; [ "${BREAK:-}" != "$1" ]; make "$1"; }
main() {
  begin "Three stages" "$@"
  stage sample make seed=0
  stage data make "sample=@$OUT/sample"
  stage policy fragile "data=@$OUT/data" "lr=$LR"
  stage grpo make "policy=@$OUT/policy" "overrides=${OVERRIDES[*]}"
  echo end
}
main "$@"; exit
"""


class Recipe:
    """A recipe of four stages in three parts, with a cache of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = 0
        text = RECIPE.replace("LIBRARY", str(LIBRARY)).replace("PYTHON", sys.executable)
        (folder / "three.sh").write_text(text)

    def run(self, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        """Run it into a new folder, `out`."""
        self.runs += 1
        env = {**os.environ, "OUT": str(self.out), "CACHE": str(self.folder / "cache"), "LR": "1", **variables}
        command = ["bash", str(self.folder / "three.sh"), *arguments]
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)

    @property
    def out(self) -> Path:
        return self.folder / f"out{self.runs}"

    def stages(self) -> list[str]:
        """Names of the last run's stages, as noted."""
        return [json.loads(line)["stage"] for line in (self.out / "stages.jsonl").read_text().splitlines()]


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    return Recipe(tmp_path)


def made(done: "subprocess.CompletedProcess[str]") -> list[str]:
    """The stages that ran."""
    assert done.returncode == 0, done.stderr
    return [line.split()[1] for line in done.stdout.splitlines() if line.startswith("made ")]


def test_a_second_run_takes_everything_and_a_changed_one_what_it_can(recipe: Recipe) -> None:
    assert made(recipe.run()) == ["sample", "data", "policy", "grpo"]
    again = recipe.run()
    assert made(again) == []
    assert again.stdout.count("nothing it depends on has changed, taken from the run of ") == 4
    assert recipe.stages() == ["sample", "data", "policy", "grpo"]
    assert (recipe.out / "grpo" / "file").read_text() == "grpo 1\n"
    changed = recipe.run(LR="2")
    assert made(changed) == ["policy", "grpo"]
    assert "── policy: not as in earlier runs: lr" in changed.stdout
    assert made(recipe.run("trainer.x=1")) == ["grpo"]


def test_a_stage_that_failed_is_not_taken_for_done(recipe: Recipe) -> None:
    broken = recipe.run(BREAK="policy")
    assert broken.returncode == 1
    assert (recipe.out / "policy" / "file").read_text() == "whole\n"
    assert made(recipe.run()) == ["policy", "grpo"]


def test_stages_runs_a_part(recipe: Recipe) -> None:
    first = recipe.run(STAGES="data")
    assert made(first) == ["sample", "data"]
    assert first.stdout.splitlines()[-1] == f"verl_sql: STAGES=data is done, in {recipe.out}"
    assert made(recipe.run(STAGES="policy")) == ["policy"]
    last = recipe.run(STAGES="grpo")
    assert made(last) == ["grpo"]
    assert last.stdout.splitlines()[-1] == "end"


@pytest.mark.parametrize(
    ("stages", "said"),
    [
        ("grpo", "STAGES=grpo needs the stage sample, which no earlier run made as these settings and this code would"),
        ("data,cold", "STAGES=data,cold: there is no part cold, only data policy grpo"),
    ],
)
def test_stages_that_cannot_run(recipe: Recipe, stages: str, said: str) -> None:
    done = recipe.run(STAGES=stages)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
