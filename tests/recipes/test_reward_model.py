"""The recipes of the reward models: what they hand to the label maker and to the trainer, and what they refuse."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

ROOT = Path(__file__).parents[2]
STUBS = """
PY={python}
set_up() {{ PROFILE={profile}; }}
check_inputs() {{ :; }}
begin() {{ shift; OVERRIDES=("$@"); OUT={out}; }}
prepare_data() {{ train=train.parquet db_root=/db data_inputs=(); }}
make_policy() {{ MODEL=tiny; }}
cold_start() {{ MODEL=cold; }}
check_prompts() {{ MAX_PROMPT_LENGTH=100; }}
stage() {{ local name=$1 command=$2; echo "stage: $name"; "$command" "$name"; }}
launched() {{ printf '%s\\n' "$@"; }}
"""


def told(recipe: str, out: Path, profile: str, *overrides: str, **variables: str) -> list[list[str]]:
    """For each stage its name and the command that it starts; the recipe with its machinery replaced."""
    text = (ROOT / "recipes" / f"{recipe}.sh").read_text(encoding="utf-8")
    head, source, rest = text.partition('source "$(dirname "${BASH_SOURCE[0]}")/lib/reward_model.sh"')
    assert source
    script = f"{head}source {ROOT}/recipes/lib/reward_model.sh\n"
    script += STUBS.format(python=sys.executable, out=out, profile=profile) + rest
    env = {**os.environ, "SEED": "3", **variables}
    done = subprocess.run(
        ["bash", "-c", script, recipe, *overrides], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == int(variables.get("STATUS", 0)), done.stderr
    return [part.splitlines() for part in (done.stdout + done.stderr).split("stage: ")[1:]] or [[done.stderr]]


def composed(folder: Path, name: str, overrides: list[str]) -> DictConfig:
    """A hydra configuration, resolved."""
    with initialize_config_dir(str(folder), version_base="1.3"):
        config = compose(name, overrides)
    OmegaConf.resolve(config)
    return config


@pytest.mark.parametrize("profile", ["cpu", "gpu"])
@pytest.mark.parametrize("name", ["prm", "orm"])
def test_what_is_started(name: str, profile: str, tmp_path: Path) -> None:
    variables = {"MODEL": "policy"} if profile == "gpu" else {}
    policy = variables.get("MODEL", "cold")
    labels, training = told(f"reward_sql_{name}", tmp_path, profile, "training.weight_decay=0.5", **variables)
    assert (labels[0], training[0]) == ("prm_labels", name)
    asked = composed(ROOT / "data_prep" / "conf", "prm_labels", labels[3:])
    assert (asked.model, asked.source, asked.db_root) == (policy, "train.parquet", "/db")
    assert (asked.engine.seed, asked.questions) == (3, 1000 if profile == "cpu" else None)
    assert asked.engine.max_model_len == 100 + asked.labelling.sampling.max_tokens
    assert asked.out == f"{tmp_path}/prm_labels/labels.jsonl"
    at = training.index("verl_sql.prm.train") + 1
    settings = "reward_model/reward_sql"
    if profile == "cpu":
        settings = training[at + 1]
        at += 2
    assert ("torch.distributed.run" in training) == (profile == "gpu")
    config = composed(
        ROOT / "recipes" / "conf", settings, training[at : training.index("training.weight_decay=0.5") + 1]
    )
    assert (config.policy, config.outcome, config.out) == (policy, name == "orm", f"{tmp_path}/{name}/model")
    assert config.labels == asked.out
    assert (config.training.seed, config.training.weight_decay) == (3, 0.5)
    assert config.training.use_cpu == (profile == "cpu")


def test_labels_that_are_there_are_taken(tmp_path: Path) -> None:
    file = tmp_path / "labels.jsonl"
    file.touch()
    (training,) = told("reward_sql_prm", tmp_path, "cpu", LABELS=str(file))
    assert f"labels={file}" in training
    ((message,),) = told("reward_sql_prm", tmp_path, "cpu", LABELS="nowhere.jsonl", STATUS="2")
    assert "there are no step labels nowhere.jsonl" in message


def test_the_papers_batch() -> None:
    config = composed(ROOT / "recipes" / "conf", "reward_model/reward_sql", ["policy=p", "labels=l", "out=o"])
    training = config.training
    assert training.per_device_train_batch_size * training.gradient_accumulation_steps * 8 == 16
    small = composed(ROOT / "recipes" / "conf", "reward_model/reward_sql_cpu", ["policy=p", "labels=l", "out=o"])
    assert set(small.training) == set(training)
