"""Train a process (or outcome) reward model on the labels of data_prep/prm_labels.py.

    python -m verl_sql.prm.train policy=POLICY labels=labels.jsonl out=PRM
    python -m verl_sql.prm.train policy=… labels=… out=ORM outcome=true
    python -m verl_sql.prm.train --config-name reward_model/reward_sql_cpu policy=… labels=… out=…

The settings are in recipes/conf/reward_model/; `training` is handed to `transformers.TrainingArguments` as it is.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf

from verl_sql.prm.training import PrmTraining, TrainingError, train


def settings_from(config: Mapping[str, Any]) -> PrmTraining:
    """Settings from a plain dict, as hydra gives it.

    Raises:
        TypeError: a key is none of ours.
    """
    values = dict(config)
    labels, out = (Path(values.pop(key)).expanduser() for key in ("labels", "out"))
    metrics = values.pop("metrics", None)
    return PrmTraining(labels=labels, out=out, metrics=Path(metrics) if metrics else None, **values)


def lines(report: Mapping[str, Any]) -> list[str]:
    """What the screen shows of a report: the numbers of held-out steps, over all and by position."""
    held = report["held_out"]
    if not held:
        return ["no question was held out"]
    rows = [
        ("final query" if report["outcome"] else "all steps", held),
        *((f"step {position}", own) for position, own in held["by_position"].items()),
    ]
    rows += [("final query", held["final_query"])] if "final_query" in held else []
    shown = [
        f"{name}: {own['steps']} held-out steps, {_percent(own['correct'])} correct, AUC {_number(own['auc'])}, "
        f"accuracy {_percent(own['accuracy'])}, calibration error {_number(own['calibration_error'])}"
        for name, own in rows
    ]
    return [*shown, f"a baseline that knows the position only: AUC {_number(held['position_only_auc'])}"]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


@hydra.main(config_path="pkg://verl_sql.recipes.conf", config_name="reward_model/reward_sql", version_base="1.3")
def main(config: DictConfig) -> None:
    """Train as the configuration says."""
    values: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    name = "orm" if values["outcome"] else "prm"
    try:
        report = train(settings_from(values))
    except TrainingError as error:
        raise SystemExit(f"{name}: {error}") from error
    for line in lines(report):
        print(f"{name}: {line}", flush=True)
    print(f"{name}: {values['out']}, {report['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
