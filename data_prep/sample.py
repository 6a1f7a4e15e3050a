"""The bundled sample, in BIRD's layout: small databases, questions, gold SQL and gold chains of CTEs, from one seed.

    python data_prep/sample.py out=data/sample
    python data_prep/sample.py out=data/sample seed=1 sizes.test=1000

`data_prep/bird.py source=data/sample splits=[cold_start,train,dev,test,unseen]` then writes its parquet.
"""

from pathlib import Path

import hydra
from omegaconf import DictConfig

from verl_sql.dataset.sample import SampleSizes, write_sample


@hydra.main(config_path="conf", config_name="sample", version_base="1.3")
def main(config: DictConfig) -> None:
    """Write the sample into the folder that the config names."""
    counts = write_sample(Path(config.out).expanduser(), config.seed, SampleSizes(**config.sizes))
    print(f"sample: {', '.join(f'{split} {count}' for split, count in counts.items())} questions in {config.out}")


if __name__ == "__main__":
    main()
