"""The recipe as a user runs it: in whole with the real trainer and vLLM, and refused with one sentence."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes" / "reward_sql_grpo.sh"
VENV = Path(sys.prefix)
SMALL = "sizes.cold_start=160 sizes.train=64 sizes.dev=4 sizes.test=24 sizes.unseen=8"


def run_recipe(out: Path, *arguments: str, timeout: float = 120, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the recipe in the environment that the tests run in, on the CPU profile unless `variables` say otherwise."""
    env = {
        **os.environ,
        "VENV": str(VENV),
        "PROFILE": "cpu",
        "OUT": str(out),
        "CACHE": str(out.parent / "cache"),
        **variables,
    }
    return subprocess.run(
        ["bash", str(RECIPE), *arguments], env=env, capture_output=True, text=True, timeout=timeout, check=False
    )


@pytest.fixture(autouse=True)
def _ready_environment() -> None:
    """The recipe's set-up must be a no-op here: a test installs nothing."""
    if find_spec("verl") is None or not (VENV / "verl_sql.ready").is_file():
        pytest.skip("not in an environment that recipes/setup.sh made")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of one whole run: sample, cold start of a few steps, two GRPO steps, report."""
    out = tmp_path_factory.mktemp("run") / "out"
    done = run_recipe(
        out, "trainer.total_training_steps=2", timeout=900, SAMPLE=SMALL, COLD_START_STEPS="12", STALL_SECONDS="400"
    )
    log = out / "console.log"
    tail = log.read_text(errors="replace")[-3000:] if log.is_file() else ""
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}\n{tail}"
    return out


@pytest.mark.trainer
def test_summary_plot_and_checkpoint_are_there(finished: Path) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    assert summary["profile"] == "cpu"
    assert summary["training"]["steps"] == 2
    assert summary["all"]["questions"] == 32
    assert set(summary["seconds"]) >= {"data", "policy", "cold_start", "grpo"}
    assert summary["versions"]["verl"] == "0.9.1"
    assert (finished / "plot.png").stat().st_size > 10_000
    assert (finished / "checkpoint" / "model.safetensors").is_file()


@pytest.mark.trainer
def test_reward_components_are_in_the_training_metrics(finished: Path) -> None:
    lines = [json.loads(line) for line in (finished / "metrics.jsonl").read_text().splitlines()]
    trained = [line["data"] for line in lines if "critic/score/mean" in line["data"]]
    assert len(trained) == 2
    for metrics in trained:
        assert metrics["reward/acc/mean"] == pytest.approx(metrics["critic/score/mean"])
        shares = [value for key, value in metrics.items() if key.startswith("outcome/")]
        assert sum(shares) == pytest.approx(1.0)


@pytest.mark.trainer
def test_every_question_is_in_both_validations(finished: Path) -> None:
    for step in (0, 2):
        lines = (finished / "validation" / f"{step}.jsonl").read_text().splitlines()
        assert len(lines) == 32
        assert {"pred", "outcome", "acc", "n_steps"} <= set(json.loads(lines[0]))


@pytest.mark.trainer
def test_weights_changed_and_load(finished: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    before = AutoModelForCausalLM.from_pretrained(finished / "cold_start" / "global_step_12" / "huggingface")
    after = AutoModelForCausalLM.from_pretrained(finished / "checkpoint")
    old, new = before.state_dict(), after.state_dict()
    assert old.keys() == new.keys()
    assert all(torch.isfinite(value).all() for value in new.values())


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"TRAIN_FILE": "none.parquet"}, "TRAIN_FILE, VAL_FILE and DB_ROOT go together"),
        (
            {"TRAIN_FILE": "none.parquet", "VAL_FILE": "none.parquet", "DB_ROOT": "/nowhere"},
            "there is no parquet none.parquet",
        ),
        ({"MODEL": "/no/such/model"}, "there is no model folder /no/such/model"),
        ({"BIRD_DIR": "/no/such/folder"}, "BIRD_DIR is for GPUs"),
    ],
)
def test_wrong_inputs_are_refused_before_anything_starts(variables: dict[str, str], said: str, tmp_path: Path) -> None:
    done = run_recipe(tmp_path / "out", **variables)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_an_earlier_run_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "stages.jsonl").write_text("")
    done = run_recipe(tmp_path)
    assert done.returncode == 2
    assert "holds an earlier run" in done.stderr
