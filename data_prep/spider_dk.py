"""Spider-DK to verl parquet.

    python data_prep/spider_dk.py source=SPIDER_DK_DIR out=data/spider_dk db_root=MERGED_DIR

`source` is the repository of Spider-DK, `db_root` a folder with Spider's and its own `database/` merged.
"""

import hydra
from omegaconf import DictConfig

from verl_sql.dataset.command import prepare_dataset
from verl_sql.dataset.readers.spider_dk import SOURCE, question_files, read_spider_dk

DESCRIPTION = "Spider-DK (Gan et al., 2021): Spider dev with questions that need domain knowledge."


@hydra.main(config_path="conf", config_name="spider_dk", version_base="1.3")
def main(config: DictConfig) -> None:
    """Prepare the splits that the config names."""
    prepare_dataset(config, SOURCE, DESCRIPTION, read_spider_dk, question_files)


if __name__ == "__main__":
    main()
