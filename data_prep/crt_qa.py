"""CRT-QA to verl parquet.

    python data_prep/crt_qa.py source=CRT_QA_DIR out=data/crt_qa

`source` holds `dataset.json` and `all_csv/`. There is no SQL: `ground_truth` is the answer.
"""

import hydra
from omegaconf import DictConfig

from verl_sql.dataset.command import prepare_dataset
from verl_sql.dataset.readers.crt_qa import SOURCE, question_files, read_crt_qa

DESCRIPTION = "CRT-QA (Zhang et al., 2023): questions on Wikipedia tables, answered in words."


@hydra.main(config_path="conf", config_name="crt_qa", version_base="1.3")
def main(config: DictConfig) -> None:
    """Prepare the splits that the config names."""
    prepare_dataset(config, SOURCE, DESCRIPTION, read_crt_qa, question_files, has_databases=False)


if __name__ == "__main__":
    main()
