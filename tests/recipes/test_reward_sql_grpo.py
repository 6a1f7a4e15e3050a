"""The recipe as a user runs it: in whole with the real trainer and vLLM, and refused with one sentence."""

import json
from pathlib import Path

import pytest

RECIPE = "reward_sql_grpo"
SMALL = {
    "SAMPLE": "sizes.cold_start=160 sizes.train=32 sizes.dev=4 sizes.test=24 sizes.unseen=8",
    "COLD_START_STEPS": "12",
    "N": "2",
}
STAGES = ["sample", "data", "sft_set", "policy", "cold_start", "first_accuracy", "grpo", "best_of_n"]
TWO_STEPS = "trainer.total_training_steps=2"


def untrained_prm(folder: Path) -> Path:
    """A process reward model with a random head. (Labels from a policy after 12 steps would all say "wrong".)"""
    import torch

    from verl_sql.integration.tiny_policy import TinyPolicyShape, build_tiny_policy
    from verl_sql.prm.model import init_prm

    build_tiny_policy(["SELECT name FROM player WHERE age > 30"] * 50, folder / "body", TinyPolicyShape(layers=1))
    model, tokenizer = init_prm(folder / "body")
    torch.manual_seed(0)
    torch.nn.init.normal_(model.score.weight, std=0.1)
    model.save_pretrained(folder / "prm")
    tokenizer.save_pretrained(folder / "prm")
    return folder / "prm"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of a small run."""
    return {**SMALL, "PRM": str(untrained_prm(tmp_path_factory.mktemp("reward_model")))}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, run_recipe, settings: dict[str, str]) -> Path:
    """The folder of one whole run: sample, cold start of a few steps, two GRPO steps, best of two, report."""
    out = tmp_path_factory.mktemp("run") / "out"
    done = run_recipe(RECIPE, out, TWO_STEPS, timeout=900, STALL_SECONDS="400", **settings)
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
        both = metrics["reward/process_reward/mean"] + metrics["reward/outcome_reward/mean"]
        assert metrics["critic/score/mean"] == pytest.approx(both)
        assert metrics["reward/outcome_reward/mean"] == pytest.approx(metrics["reward/acc/mean"])
        assert metrics["reward/prm_asked/mean"] == 1.0
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
    wanted = ("verl_sql: after the cold start: EX", "step ", "validation ", "test, stage by stage: cold start")
    told = [next(start for start in wanted if line.startswith(start)) for line in screen if line.startswith(wanted)]
    assert told == [wanted[0], "step ", "step ", "validation ", wanted[3]]


@pytest.mark.trainer
def test_the_gain_of_each_stage_is_in_the_summary(finished: Path) -> None:
    summary = json.loads((finished / "summary.json").read_text())
    assert summary["best_of_n"]["n"] == 2
    assert summary["best_of_n"]["questions"] == 24
    assert set(summary["best_of_n"]["accuracy"]) == {"self_consistency", "prm_mean", "oracle"}
    assert (finished / "stages.png").stat().st_size > 10_000
    assert len((finished / "best_of_n" / "candidates.jsonl").read_text().splitlines()) == 24 * (1 + 2)  # one greedy


@pytest.mark.trainer
def test_a_second_run_takes_every_stage_from_the_first(
    finished: Path, settings: dict[str, str], tmp_path: Path, run_recipe
) -> None:
    cache, out = str(finished.parent / "cache"), tmp_path / "out"
    done = run_recipe(RECIPE, out, TWO_STEPS, timeout=300, CACHE=cache, **settings)
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
        ({"ADVANTAGE": "gae"}, "ADVANTAGE=gae knows no steps: set MODE=rule_or"),
        ({"MODE": "both"}, "MODE must be rule_or, prm or prm+rule_or, not 'both'"),
        ({"MODE": "rule_or", "ESTIMATOR": "cocte_step_grpo"}, "ESTIMATOR=cocte_step_grpo needs step scores"),
        ({"ESTIMATOR": "gae"}, "ESTIMATOR must be grpo, cocte_step_grpo or deepseekmath_process, not 'gae'"),
        ({"PRM": "/no/such/folder"}, "PRM=/no/such/folder is not a folder"),
        ({"PRM_AT": "home"}, "PRM_AT must be served or local, not 'home'"),
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
