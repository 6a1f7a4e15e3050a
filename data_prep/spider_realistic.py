"""Spider-Realistic to verl parquet.

    python data_prep/spider_realistic.py source=SPIDER_REALISTIC_DIR out=data/spider_realistic db_root=SPIDER_DIR

`source` holds `spider-realistic.json`, `db_root` is the folder of Spider.
"""

import hydra
from omegaconf import DictConfig

from verl_sql.dataset.command import prepare_dataset
from verl_sql.dataset.readers.spider_realistic import SOURCE, question_files, read_spider_realistic

DESCRIPTION = "Spider-Realistic (Deng et al., 2021): Spider dev without explicit column names."


@hydra.main(config_path="conf", config_name="spider_realistic", version_base="1.3")
def main(config: DictConfig) -> None:
    """Prepare the splits that the config names."""
    prepare_dataset(config, SOURCE, DESCRIPTION, read_spider_realistic, question_files)


if __name__ == "__main__":
    main()
