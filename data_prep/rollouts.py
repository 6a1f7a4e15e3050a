"""Scored rollouts of a policy: N chains a question, each with its reward, for rejection sampling and DPO.

    python data_prep/rollouts.py source=data/bird/train.parquet db_root=BIRD model=POLICY out=rollouts.jsonl
    python data_prep/rollouts.py source=… db_root=… endpoint.base_url=http://…/v1 mode=prm+rule_or prm.folder=PRM out=…

Killed and started again it goes on where it stopped. `data_prep/sft.py kind=rejection|preference` reads the file.
"""

from functools import partial
from pathlib import Path
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf

from verl_sql.database.catalog import DatabaseNotFound
from verl_sql.generation.sampler import SamplingError
from verl_sql.integration.rollout_sources import make_sampler, make_scorer, rollout_settings_from
from verl_sql.integration.rollouts import sample_rollouts


@hydra.main(config_path="conf", config_name="rollouts", version_base="1.3")
def main(config: DictConfig) -> None:
    """Sample, score, and say what came out."""
    values: dict[str, Any] = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    named, out = values["source"], Path(values["out"]).expanduser()
    sources = [Path(file).expanduser() for file in (named if isinstance(named, list) else [named])]
    try:
        settings = rollout_settings_from(values)
        scorer = partial(make_scorer, values["prm"]) if settings.prm else None
        report = sample_rollouts(sources, out, settings, partial(make_sampler, values), scorer)
    except (DatabaseNotFound, FileNotFoundError, SamplingError, TypeError, ValueError) as error:
        raise SystemExit(f"rollouts: {error}") from error
    print(f"{out}: {report['counts']}")


if __name__ == "__main__":
    main()
