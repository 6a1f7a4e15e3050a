"""The bundled sample, in BIRD's layout: small databases, questions, gold SQL and gold chains of CTEs, from one seed.

    python data_prep/sample.py out=data/sample
    python data_prep/sample.py out=data/sample seed=1 sizes.test=1000
    python data_prep/sample.py out=data/lookups questions=lookups

`data_prep/bird.py source=data/sample splits=[cold_start,train,dev,test,unseen]` then writes its parquet.
`questions=lookups` are about names that have to be looked up first, in splits cold_start, train, test and unseen.
"""

from pathlib import Path

import hydra
from omegaconf import DictConfig

from verl_sql.dataset.sample import SampleSizes, write_sample
from verl_sql.dataset.sample.lookups import LookupSizes, write_lookups


@hydra.main(config_path="conf", config_name="sample", version_base="1.3")
def main(config: DictConfig) -> None:
    """Write the sample into the folder that the config names."""
    out = Path(config.out).expanduser()
    if config.questions == "chains":
        counts = write_sample(out, config.seed, SampleSizes(**config.sizes))
    elif config.questions == "lookups":
        counts = write_lookups(out, config.seed, LookupSizes(**config.lookup_sizes))
    else:
        raise SystemExit(f"sample: questions={config.questions}: there are chains and lookups")
    print(f"sample: {', '.join(f'{split} {count}' for split, count in counts.items())} questions in {config.out}")


if __name__ == "__main__":
    main()
