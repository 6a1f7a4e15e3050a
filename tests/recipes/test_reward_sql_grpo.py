"""The recipe as a user runs it: in whole with the real trainer and vLLM, and refused with one sentence."""

import json
from pathlib import Path

import pytest

RECIPE = "reward_sql_grpo"
SMALL = {
    "SAMPLE": "sizes.cold_start=160 sizes.train=32 sizes.dev=4 sizes.test=24 sizes.unseen=8",
    "COLD_START_STEPS": "12",
}
STAGES = ["sample", "data", "sft_set", "policy", "cold_start", "grpo"]
TWO_STEPS = "trainer.total_training_steps=2"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, run_recipe) -> Path:
    """The folder of one whole run: sample, cold start of a few steps, two GRPO steps, report."""
    out = tmp_path_factory.mktemp("run") / "out"
    done = run_recipe(RECIPE, out, TWO_STEPS, timeout=900, STALL_SECONDS="400", **SMALL)
    log = out / "console.log"
    tail = log.read_text(errors="replace")[-3000:] if log.is_file() else ""
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}\n{tail}"
    (out / "screen.txt").write_text(done.stdout)
    return out


@pytest.mark.trainer
def test_summary_plot_and_checkpoint_are_there(finished: Path) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    assert summary["profile"] == "cpu"
    assert summary["training"]["steps"] == 2
    assert summary["all"]["questions"] == 32
    assert list(summary["seconds"]) == STAGES
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


@pytest.mark.trainer
def test_the_first_result_is_on_the_screen_before_training_goes_on(finished: Path) -> None:
    screen = (finished / "screen.txt").read_text().splitlines()
    told = [line.split(":")[0] for line in screen if line.startswith(("validation ", "step "))]
    before, after = (
        "validation before training, EX in % [95 % interval]",
        "validation after step 2, EX in % [95 % interval]",
    )
    assert told == [before, "step 1 of 2", "step 2 of 2", after]


@pytest.mark.trainer
def test_a_second_run_takes_every_stage_from_the_first(finished: Path, tmp_path: Path, run_recipe) -> None:
    cache = str(finished.parent / "cache")
    done = run_recipe(RECIPE, tmp_path / "out", TWO_STEPS, timeout=300, CACHE=cache, **SMALL)
    assert done.returncode == 0, done.stderr
    taken = [line.split()[1] for line in done.stdout.splitlines() if "taken from the run of" in line]
    assert taken == [f"{stage}:" for stage in STAGES]
    first, second = (json.loads((folder / "summary.json").read_text()) for folder in (finished, tmp_path / "out"))
    assert second["all"] == first["all"]
    assert (tmp_path / "out" / "checkpoint" / "model.safetensors").samefile(
        finished / "checkpoint" / "model.safetensors"
    )


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
        ({"ADVANTAGE": "ppo"}, "ADVANTAGE must be grpo or gae, not 'ppo'"),
    ],
)
def test_wrong_inputs_are_refused_before_anything_starts(
    variables: dict[str, str], said: str, tmp_path: Path, run_recipe
) -> None:
    done = run_recipe(RECIPE, tmp_path / "out", **variables)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_an_earlier_run_is_not_overwritten(tmp_path: Path, run_recipe) -> None:
    (tmp_path / "stages.jsonl").write_text("")
    done = run_recipe(RECIPE, tmp_path)
    assert done.returncode == 2
    assert "holds an earlier run" in done.stderr
