"""SFT sets and preference pairs from prepared questions.

    python data_prep/sft.py kind=chains source=data/bird_cocte/train.parquet out=data/sft.parquet
    python data_prep/sft.py kind=star source=data/bird/train.parquet db_root=BIRD out=… endpoint.base_url=http://…/v1
    python data_prep/sft.py kind=rejection source=… rollouts=[rollouts.jsonl] threshold=1.0 keep=4 out=…
    python data_prep/sft.py kind=preference source=… rollouts=[rollouts.jsonl] out=data/pairs.parquet

Kinds: chains, distilled, star, privileged, traces, rejection, preference (`verl_sql.dataset.sft.settings.SetKind`).
"""

from pathlib import Path

import hydra
from omegaconf import DictConfig, OmegaConf

from verl_sql.database.catalog import DatabaseNotFound
from verl_sql.dataset.sft.build import build_set
from verl_sql.dataset.sft.settings import set_settings_from
from verl_sql.generation.sampler import SamplingError


@hydra.main(config_path="conf", config_name="sft", version_base="1.3")
def main(config: DictConfig) -> None:
    """Write the set and say what is in it."""
    values: dict = OmegaConf.to_container(config, resolve=True)  # type: ignore[assignment]
    source, out = Path(values.pop("source")).expanduser(), Path(values.pop("out")).expanduser()
    rollouts = [Path(file).expanduser() for file in values.pop("rollouts")]
    db_root, workers = values.pop("db_root"), values.pop("workers")
    try:
        root = Path(db_root).expanduser() if db_root else None
        report = build_set(source, out, set_settings_from(values), rollouts, root, workers)
    except (DatabaseNotFound, FileNotFoundError, SamplingError, TypeError, ValueError) as error:
        raise SystemExit(f"sft: {error}") from error
    print(f"{out}: {report['rows']} rows; {report['counts']}")


if __name__ == "__main__":
    main()
