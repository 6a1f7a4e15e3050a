"""Chains of CTEs for the gold queries of prepared parquet (Reward-SQL, §4.1).

    python data_prep/cocte.py sources=[data/bird/train.parquet] db_root=BIRD/train_databases out=data/bird_cocte
    python data_prep/cocte.py sources=[…] db_root=… out=… settings.llm.base_url=http://localhost:8000/v1

Each parquet is written again under `out` with `extra_info.gold_chain` filled in where a chain holds: equal to the gold
by execution, every prefix running. `<name>.cocte.json` beside it counts outcomes and lists every question without a
chain. Rows that have a chain keep it. `data_prep/sft.py kind=chains` makes an SFT set of them.
"""

from pathlib import Path

import hydra
from omegaconf import DictConfig, OmegaConf

from verl_sql.database.catalog import DatabaseNotFound
from verl_sql.dataset.cocte.build import convert_file
from verl_sql.dataset.cocte.settings import chain_settings_from
from verl_sql.dataset.spreading.job import SpreadError
from verl_sql.generation.sampler import SamplingError


@hydra.main(config_path="conf", config_name="cocte", version_base="1.3")
def main(config: DictConfig) -> None:
    """Convert every parquet and say what became of its questions."""
    try:
        settings = chain_settings_from(OmegaConf.to_container(config.settings, resolve=True))  # type: ignore[arg-type]
        root = Path(config.db_root).expanduser() if config.db_root else None
        for source in map(Path, config.sources):
            target = Path(config.out).expanduser() / source.name
            if target.resolve() == source.expanduser().resolve():
                raise ValueError(f"out={config.out} would overwrite {source}")
            report = convert_file(source.expanduser(), target, root, settings, config.workers, config.ray_address)
            counts = ", ".join(f"{name} {count}" for name, count in report["outcomes"].items())
            print(f"{target}: {report['questions']} questions; {counts}")
    except (DatabaseNotFound, FileNotFoundError, SamplingError, SpreadError, TypeError, ValueError) as error:
        raise SystemExit(f"cocte: {error}") from error


if __name__ == "__main__":
    main()
