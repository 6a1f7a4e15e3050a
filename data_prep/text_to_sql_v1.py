"""Clinton/Text-to-sql-v1 to verl parquet.

    python data_prep/text_to_sql_v1.py source=TEXT_TO_SQL_DIR out=data/text_to_sql_v1

`source` is the folder of its JSON-lines file, or the file. There are no databases and nothing is executed.
"""

import hydra
from omegaconf import DictConfig

from verl_sql.dataset.command import prepare_dataset
from verl_sql.dataset.readers.text_to_sql_v1 import SOURCE, question_files, read_text_to_sql_v1

DESCRIPTION = (
    "Clinton/Text-to-sql-v1: instructions with CREATE TABLE statements and SQL in mixed dialects, without databases."
)


@hydra.main(config_path="conf", config_name="text_to_sql_v1", version_base="1.3")
def main(config: DictConfig) -> None:
    """Prepare the splits that the config names."""
    prepare_dataset(config, SOURCE, DESCRIPTION, read_text_to_sql_v1, question_files, has_databases=False)


if __name__ == "__main__":
    main()
