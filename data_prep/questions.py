"""Your own questions to verl parquet.

    python data_prep/questions.py source=MY_DIR out=data/questions
    python data_prep/questions.py source=MY_DIR out=data/questions splits=[train,dev]

`source` holds `train.jsonl` and databases, in any layout of `verl_sql.database.catalog`.
"""

import hydra
from omegaconf import DictConfig

from verl_sql.dataset.command import prepare_dataset
from verl_sql.dataset.readers.questions import SOURCE, question_files, read_questions

DESCRIPTION = "Questions of your own."


@hydra.main(config_path="conf", config_name="questions", version_base="1.3")
def main(config: DictConfig) -> None:
    """Prepare the splits that the config names."""
    prepare_dataset(config, SOURCE, DESCRIPTION, read_questions, question_files)


if __name__ == "__main__":
    main()
