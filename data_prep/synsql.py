"""SynSQL-2.5M to verl parquet.

    python data_prep/synsql.py source=SYNSQL_DIR out=data/synsql
    python data_prep/synsql.py source=SYNSQL_DIR out=data/synsql settings.limit=100000

`source` holds `data.json` and `databases/`.
"""

import hydra
from omegaconf import DictConfig

from verl_sql.dataset.command import prepare_dataset
from verl_sql.dataset.readers.synsql import SOURCE, question_files, read_synsql

DESCRIPTION = "SynSQL-2.5M (Li et al., 2025), Apache-2.0: synthetic questions on synthetic databases."


@hydra.main(config_path="conf", config_name="synsql", version_base="1.3")
def main(config: DictConfig) -> None:
    """Prepare the splits that the config names."""
    prepare_dataset(config, SOURCE, DESCRIPTION, read_synsql, question_files)


if __name__ == "__main__":
    main()
