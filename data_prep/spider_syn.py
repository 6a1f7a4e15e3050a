"""Spider-Syn to verl parquet.

    python data_prep/spider_syn.py source=SPIDER_SYN_DIR out=data/spider_syn db_root=SPIDER_DIR

`source` is the repository of Spider-Syn, `db_root` the folder of Spider, whose databases it asks about.
"""

import hydra
from omegaconf import DictConfig

from verl_sql.dataset.command import prepare_dataset
from verl_sql.dataset.readers.spider_syn import SOURCE, question_files, read_spider_syn

DESCRIPTION = "Spider-Syn (Gan et al., 2021): Spider with schema words replaced by synonyms."


@hydra.main(config_path="conf", config_name="spider_syn", version_base="1.3")
def main(config: DictConfig) -> None:
    """Prepare the splits that the config names."""
    prepare_dataset(config, SOURCE, DESCRIPTION, read_spider_syn, question_files)


if __name__ == "__main__":
    main()
