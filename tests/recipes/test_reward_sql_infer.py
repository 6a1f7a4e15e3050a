"""The recipe of inference: what it asks for, and that its options are those of `verl-sql infer`."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from verl_sql.cli import build_app

RECIPE = Path(__file__).parents[2] / "recipes" / "reward_sql_infer.sh"

REFUSED = [
    ({}, "set MODEL to the policy (a folder, or a name on the hub), or BASE_URL to its endpoint"),
    ({"MODEL": "org/m"}, "set VAL_FILE to the questions: parquet from data_prep"),
    ({"MODEL": "org/m", "VAL_FILE": "a,b"}, "set DB_ROOT to the folder of the questions' databases"),
    ({"MODEL": "org/m", "VAL_FILE": "a,b", "DB_ROOT": "/no/root"}, "DB_ROOT=/no/root is not a folder"),
    ({"BASE_URL": "http://x/v1", "VAL_FILE": f"{RECIPE},b", "DB_ROOT": "/"}, "VAL_FILE: there is no file b"),
]


@pytest.mark.parametrize(("inputs", "sentence"), REFUSED)
def test_missing_inputs_are_named_in_one_sentence(inputs: dict[str, str], sentence: str) -> None:
    environment = {"PATH": os.environ["PATH"], "PROFILE": "cpu", **inputs}
    ended = subprocess.run(["bash", str(RECIPE)], env=environment, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", f"verl_sql: {sentence}\n")


def test_its_options_exist() -> None:
    used = set(re.findall(r"(?<![\w-])--[a-z-]+", RECIPE.read_text(encoding="utf-8")))
    shown = CliRunner().invoke(build_app(), ["infer", "--help"], env={"COLUMNS": "300", "NO_COLOR": "1"}).stdout
    assert len(used) > 8
    assert {option for option in used if option not in shown} == set()
