"""Spider to verl parquet.

    python data_prep/spider.py source=SPIDER_DIR out=data/spider
    python data_prep/spider.py source=SPIDER_DIR out=data/spider splits=[dev] settings.form=ddl

`source` holds `train_spider.json`, `train_others.json`, `dev.json` and `database/`, as the official archive unpacks.
"""

import hydra
from omegaconf import DictConfig

from verl_sql.dataset.command import prepare_dataset
from verl_sql.dataset.readers.spider import SOURCE, question_files, read_spider

DESCRIPTION = "Spider (Yu et al., 2018), CC BY-SA 4.0: cross-domain questions on small databases."


@hydra.main(config_path="conf", config_name="spider", version_base="1.3")
def main(config: DictConfig) -> None:
    """Prepare the splits that the config names."""
    prepare_dataset(config, SOURCE, DESCRIPTION, read_spider, question_files)


if __name__ == "__main__":
    main()
