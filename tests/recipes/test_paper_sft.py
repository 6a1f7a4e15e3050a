"""The papers' supervised recipes: their numbers, what they hand to the trainer, what they refuse, small runs (long)."""

import json
import os
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

ROOT = Path(__file__).parents[2]
# Batch, learning rate, epochs; a batch of Sparks is one conversation a GPU.
PAPERS = {
    "reward_sql_sft": (16, 1e-5, 3),
    "reasoning_sql_sft": (32, 1e-5, 3),
    "think2sql_sft": (128, 4e-5, 5),
    "tabular_reasoning_sft": (8, 2e-4, 1),
}
SMALL = "sizes.cold_start=40 sizes.train=8 sizes.dev=4 sizes.test=4 sizes.unseen=4"
# The recipe without its last line, with everything that runs replaced by something that prints what it was given.
STUBS = """
PY=echo
launched() {{ printf '%s\\n' "$@"; }}
cat() {{ echo 9; }}
OUT={out} PROFILE={profile} MODEL=policy SEED=3 TEACHER_URL=http://teacher/v1
train=train.parquet db_root=databases set=set.parquet
OVERRIDES=(data.max_length=77)
"""


def told(recipe: str, out: Path, profile: str, command: str) -> list[str]:
    """The lines that a function of the recipe prints."""
    text = (ROOT / "recipes" / f"{recipe}.sh").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith(("main ", "source "))]
    head = [f"source {ROOT}/recipes/lib/paper_sft.sh"]
    script = "\n".join([*head, *lines]) + STUBS.format(out=out, profile=profile) + command
    done = subprocess.run(["bash", "-c", script], env=dict(os.environ), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def composed(printed: list[str]) -> DictConfig:
    """verl's SFT configuration with the overrides that a recipe handed to its trainer, resolved."""
    spec = find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("verl is not installed")
    overrides = [line for line in printed[printed.index("verl.trainer.sft_trainer") + 1 :] if "=" in line]
    search = f"hydra.searchpath=[file://{ROOT}/recipes/conf]"
    kept = [o for o in overrides if not o.startswith(("hydra.", "'hydra"))]
    folder = Path(spec.submodule_search_locations[0]) / "trainer" / "config"
    with initialize_config_dir(str(folder), version_base=None):
        config = compose("sft_trainer_engine", [search, *kept])
    OmegaConf.resolve(config)
    return config


@pytest.mark.parametrize("recipe", PAPERS)
def test_gpu_form(recipe: str, tmp_path: Path) -> None:
    config = composed(told(recipe, tmp_path, "gpu", "sft_gpu sft"))
    batch, rate, epochs = PAPERS[recipe]
    assert (config.data.train_batch_size, config.optim.lr, config.trainer.total_epochs) == (batch, rate, epochs)
    assert (config.optim.lr_scheduler_type, config.trainer.n_gpus_per_node) == ("cosine", 8)
    assert (config.model.path, config.data.train_files, config.data.max_length) == ("policy", "set.parquet", 77)
    assert config.model.lora_rank == (16 if recipe == "tabular_reasoning_sft" else 0)
    assert list(config.checkpoint.save_contents) == ["model", "hf_model"]


@pytest.mark.parametrize("recipe", PAPERS)
def test_cpu_form(recipe: str, tmp_path: Path) -> None:
    config = composed(told(recipe, tmp_path, "cpu", "sft_small sft"))
    assert (config.trainer.device, config.trainer.n_gpus_per_node, config.trainer.total_training_steps) == (
        "cpu",
        1,
        200,
    )
    assert (config.trainer.experiment_name, config.optim.lr, config.data.max_length) == (recipe, 4e-3, 77)
    assert config.model.lora_rank == 0


@pytest.mark.parametrize(
    ("recipe", "words"),
    [
        ("reasoning_sql_sft", "kind=star style=answer_tag"),
        ("think2sql_sft", "kind=distilled style=answer_tag"),
        ("tabular_reasoning_sft", "kind=distilled style=sql_tag"),
    ],
)
def test_the_papers_set_is_asked_of_the_teacher(recipe: str, words: str, tmp_path: Path) -> None:
    (command,) = told(recipe, tmp_path, "gpu", "write_paper_set out.parquet")
    assert set(words.split()) < set(command.split())
    assert {"source=train.parquet", "db_root=databases", "endpoint.base_url=http://teacher/v1"} < set(command.split())


def test_chains_are_made_by_rule_and_by_the_teacher(tmp_path: Path) -> None:
    convert, write = told("reward_sql_sft", tmp_path, "gpu", "write_paper_set out.parquet")
    assert "settings.llm.base_url=http://teacher/v1" in convert.split()
    assert {"kind=chains", f"source={tmp_path}/sft_set/chains/train.parquet", "out=out.parquet"} < set(write.split())


@pytest.mark.parametrize(
    ("recipe", "variables", "said"),
    [
        ("reasoning_sql_sft", {"SFT_FILE": "none.parquet"}, "there is no set SFT_FILE=none.parquet"),
        ("think2sql_sft", {"PROFILE": "gpu", "BIRD_DIR": "", "MODEL": "m"}, "set BIRD_DIR to BIRD's folder"),
        ("tabular_reasoning_sft", {"BIRD_DIR": "/no/such"}, "BIRD_DIR is for GPUs"),
        ("reward_sql_sft", {"MODEL": "/no/such/model"}, "there is no model folder /no/such/model"),
    ],
)
def test_wrong_inputs_are_refused_in_one_sentence(
    recipe: str, variables: dict[str, str], said: str, tmp_path: Path, run_recipe: Any
) -> None:
    if variables.get("PROFILE") == "gpu":
        # The set-up would install for GPUs; the check alone is what is asked for.
        script = f"source {ROOT}/recipes/lib/paper_sft.sh; PROFILE=gpu MODEL=m BIRD_DIR= SFT_FILE= sft_inputs"
        done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    else:
        done = run_recipe(recipe, tmp_path / "out", **variables)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_a_teacher_is_needed_with_gpus(tmp_path: Path) -> None:
    script = f"source {ROOT}/recipes/lib/paper_sft.sh; check_inputs() {{ :; }}; PROFILE=gpu; sft_inputs"
    env = {**os.environ, "TEACHER_URL": "", "SFT_FILE": ""}
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.startswith("verl_sql: set TEACHER_URL")) == (2, True)


@pytest.mark.long
@pytest.mark.parametrize("recipe", PAPERS)
def test_ten_steps(recipe: str, tmp_path: Path, run_recipe: Any) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    adapters = ["model.lora_rank=16"] if recipe == "tabular_reasoning_sft" else []
    done = run_recipe(recipe, tmp_path / "out", *adapters, timeout=900, SAMPLE=SMALL, SFT_STEPS="10")
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    lines = [json.loads(line)["data"] for line in (tmp_path / "out/metrics.jsonl").read_text().splitlines()]
    losses = [line["train/loss"] for line in lines if "train/loss" in line]
    assert len(losses) == 10
    assert adapters or losses[-1] < losses[0]
    before = AutoModelForCausalLM.from_pretrained(tmp_path / "out/policy").state_dict()
    after = AutoModelForCausalLM.from_pretrained(tmp_path / "out/checkpoint").state_dict()
    assert before.keys() == after.keys()
    changed = [name for name, tensor in after.items() if not torch.equal(tensor.float(), before[name].float())]
    assert changed
    assert all("proj" in name for name in changed) == bool(adapters)
