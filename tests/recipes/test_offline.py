"""The offline recipes: what they refuse, what they hand to the trainers, and the paper's numbers in their settings."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

ROOT = Path(__file__).parents[2]
VENV = Path(sys.prefix)
# The recipe without its last line, its stages and trainers replaced by ones that print what they were given.
STUBS = """
PY={python}
stage() {{ local name=$1 command=$2; shift 2; "$command" "$name"; }}
launched() {{ printf '%s\\n' "$@"; }}
sft() {{ printf '%s\\n' "$@"; }}
cp() {{ :; }}
cat() {{ echo 9; }}
OUT={out} PROFILE={profile} MODEL=policy MAX_PROMPT_LENGTH=100 MAX_RESPONSE_LENGTH=50 SEED=3
OVERRIDES=(training.beta=0.7)
set={out}/set.parquet
offline_set() {{ echo "set: $*"; }}
MODE=${{MODE:-rule_or}}
train_offline
"""


def told(recipe: str, out: Path, profile: str = "cpu", **variables: str) -> list[str]:
    """The lines that the recipe's training prints with its trainer replaced."""
    text = (ROOT / "recipes" / f"{recipe}.sh").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith(("offline_main", "source "))]
    head = [f"source {ROOT}/recipes/lib/offline.sh"]
    script = "\n".join([*head, *lines]) + STUBS.format(python=sys.executable, out=out, profile=profile)
    (out / "set.report.json").write_text('{"rows": 100}')
    done = subprocess.run(
        ["bash", "-c", script], env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def composed(folder: Path, name: str, *overrides: str) -> DictConfig:
    """A hydra configuration, resolved."""
    with initialize_config_dir(str(folder), version_base=None):
        config = compose(name, list(overrides))
    OmegaConf.resolve(config)
    return config


def test_dpo_has_the_papers_hyper_parameters() -> None:
    config = composed(ROOT / "recipes" / "conf", "dpo/reward_sql", "model=m", "pairs=p", "out=o")
    training = config.training
    assert (training.learning_rate, training.num_train_epochs, training.beta) == (1e-6, 1, 0.1)
    assert training.per_device_train_batch_size * training.gradient_accumulation_steps * 8 == 16
    small = composed(ROOT / "recipes" / "conf", "dpo/reward_sql_cpu", "model=m", "pairs=p", "out=o")
    assert set(small.training) == set(training)
    assert (small.training.use_cpu, small.training.bf16, small.save_dtype) == (True, False, "float32")


@pytest.mark.parametrize("profile", ["cpu", "gpu"])
def test_what_dpo_is_started_with(profile: str, tmp_path: Path) -> None:
    first, *command = told("reward_sql_dpo", tmp_path, profile, KEEP="3")
    assert first == "set: preference pairing=best_worst keep=3 margin=0.0"
    at = command.index("verl_sql.integration.dpo") + 1
    name = {"cpu": "dpo/reward_sql_cpu", "gpu": "dpo/reward_sql"}[profile]
    overrides = command[at + 2 :] if profile == "cpu" else command[at:]
    assert (command[at : at + 2] == ["--config-name", name]) == (profile == "cpu")
    assert ("torch.distributed.run" in command) == (profile == "gpu")
    config = composed(ROOT / "recipes" / "conf", name, *overrides)
    assert (config.model, config.training.seed, config.training.beta) == ("policy", 3, 0.7)
    assert config.training.max_length == 100 + 50 + 256
    assert (config.pairs, config.out) == (f"{tmp_path}/set.parquet", f"{tmp_path}/dpo/policy")


def test_rejection_sampling_in_small(tmp_path: Path) -> None:
    first, *arguments = told("reward_sql_rs", tmp_path, EPOCHS="2", RS_LR="1e-4")
    assert first == "set: rejection threshold=0.5 keep=null diversity=0.0"
    steps = 2 * (100 // 16)
    expected = [f"{tmp_path}/set.parquet", "policy", "rs", str(steps), "1e-4", "data.train_batch_size=16"]
    assert arguments == [*expected, "training.beta=0.7"]


@pytest.mark.parametrize(("mode", "threshold"), [("prm+rule_or", "1.5"), ("prm", "0.5"), ("rule_or", "0.5")])
def test_the_threshold_goes_with_the_reward(mode: str, threshold: str, tmp_path: Path) -> None:
    assert f"threshold={threshold}" in told("reward_sql_rs", tmp_path, MODE=mode)[0]
    assert "threshold=0.9" in told("reward_sql_rs", tmp_path, MODE=mode, THRESHOLD="0.9")[0]


def test_rejection_sampling_on_gpus_has_the_papers_hyper_parameters(tmp_path: Path) -> None:
    spec = find_spec("verl")
    if spec is None or not spec.submodule_search_locations:
        pytest.skip("verl is not installed")
    command = told("reward_sql_rs", tmp_path, "gpu")[1:]
    overrides = command[command.index("verl.trainer.sft_trainer") + 1 : -1]
    search = f"hydra.searchpath=[file://{ROOT}/recipes/conf]"
    folder = Path(spec.submodule_search_locations[0]) / "trainer" / "config"
    config = composed(folder, "sft_trainer_engine", search, *(o for o in overrides if "searchpath" not in o))
    assert (config.optim.lr, config.trainer.total_epochs, config.data.train_batch_size) == (1e-5, 3, 16)
    assert (config.model.path, config.trainer.seed, config.data.max_length) == ("policy", 3, 100 + 50 + 256)
    assert list(config.checkpoint.save_contents) == ["model", "hf_model"]


def run_recipe(recipe: str, timeout: float = 120, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a recipe as a user does, without a GPU."""
    if find_spec("verl") is None or not (VENV / "verl_sql.ready").is_file():
        pytest.skip("not in an environment that recipes/setup.sh made")
    command = ["bash", str(ROOT / "recipes" / f"{recipe}.sh")]
    env = {**os.environ, "VENV": str(VENV), "PROFILE": "cpu", **variables}
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout, check=False)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"MODE": "both"}, "MODE must be rule_or, prm or prm+rule_or, not 'both'"),
        ({"MODE": "prm"}, "MODE=prm needs a process reward model: set PRM to its checkpoint"),
        ({"PRM": "/nowhere"}, "PRM=/nowhere is not a folder"),
        ({"ROLLOUTS": "/nowhere.jsonl"}, "there are no rollouts /nowhere.jsonl"),
        ({"ROLLOUTS": __file__}, "set TRAIN_FILE, VAL_FILE and DB_ROOT"),
    ],
)
def test_wrong_inputs_are_refused_before_anything_starts(variables: dict[str, str], said: str, tmp_path: Path) -> None:
    recipe = "reward_sql_dpo" if "ROLLOUTS" in variables else "reward_sql_rs"
    done = run_recipe(recipe, OUT=str(tmp_path / "out"), **variables)
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)
    assert said in done.stderr
    assert not (tmp_path / "out").exists()


def test_without_trl_and_without_an_index_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    for name, body in (
        ("python", f'case $2 in *find_spec*) exit 1 ;; *) exec {sys.executable} "$@" ;; esac'),
        ("uv", "echo error: no index >&2; exit 1"),
    ):
        (tmp_path / "bin" / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    script = f"source {ROOT}/recipes/lib/offline.sh; need_trl"
    env = {**os.environ, "VENV": str(tmp_path)}
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("verl_sql: DPO needs TRL and it could not be installed")
    assert "uv pip install --python" in done.stderr
    assert "trl==1.16.0" in done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    ("recipe", "variables"),
    [("reward_sql_rs", {"THRESHOLD": "-1", "EPOCHS": "1"}), ("reward_sql_dpo", {"MARGIN": "-1"})],
)
def test_a_whole_small_run(recipe: str, variables: dict[str, str], tmp_path: Path) -> None:
    """After a cold start of a few steps nothing is right: every chain is kept, and ties are made pairs of."""
    out = tmp_path / "out"
    if recipe == "reward_sql_dpo" and find_spec("trl") is None:
        pytest.skip("TRL, the extra `dpo`, is not installed")
    small = "sizes.cold_start=160 sizes.train=48 sizes.dev=4 sizes.test=24 sizes.unseen=8"
    done = run_recipe(
        recipe, timeout=900, OUT=str(out), CACHE=str(tmp_path / "cache"), SAMPLE=small, COLD_START_STEPS="12", N="4",
        STALL_SECONDS="400", **variables,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    summary = json.loads((out / "summary.json").read_text())
    assert summary["all"]["questions"] == 32
    assert set(summary["seconds"]) >= {"cold_start", "before", "rollouts", "after"}
    assert len((out / "rollouts" / "rollouts.jsonl").read_text().splitlines()) == 48 * 4
    weights = [(out / folder / "model.safetensors").read_bytes() for folder in ("checkpoint", "policy")]
    assert weights[0] != weights[1]
