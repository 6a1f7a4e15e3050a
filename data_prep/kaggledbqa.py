"""KaggleDBQA to verl parquet.

    python data_prep/kaggledbqa.py source=KAGGLEDBQA_DIR out=data/kaggledbqa

`source` holds `examples/` and `databases/`, as the archive unpacks.
"""

import hydra
from omegaconf import DictConfig

from verl_sql.dataset.command import prepare_dataset
from verl_sql.dataset.readers.kaggledbqa import SOURCE, question_files, read_kaggledbqa

DESCRIPTION = "KaggleDBQA (Lee et al., 2021): questions on eight real databases."


@hydra.main(config_path="conf", config_name="kaggledbqa", version_base="1.3")
def main(config: DictConfig) -> None:
    """Prepare the splits that the config names."""
    prepare_dataset(config, SOURCE, DESCRIPTION, read_kaggledbqa, question_files)


if __name__ == "__main__":
    main()
