"""BIRD to verl parquet.

    python data_prep/bird.py source=BIRD_DIR out=data/bird
    python data_prep/bird.py source=BIRD_DIR out=data/bird splits=[dev] settings.template=think2sql

`source` holds `train/train.json`, `dev/dev.json` and the `*_databases` folders, or the archives as they unpack.
"""

from pathlib import Path

import hydra
from omegaconf import DictConfig

from verl_sql.dataset.command import prepare_dataset
from verl_sql.dataset.readers.bird import SOURCE, question_file, read_bird

DESCRIPTION = "BIRD (Li et al., 2023), CC BY-SA 4.0: questions with evidence on large, dirty databases."


def question_files(source: Path, split: str) -> tuple[Path, ...]:
    """The one question file of a split."""
    return (question_file(source, split),)


@hydra.main(config_path="conf", config_name="bird", version_base="1.3")
def main(config: DictConfig) -> None:
    """Prepare the splits that the config names."""
    prepare_dataset(config, SOURCE, DESCRIPTION, read_bird, question_files)


if __name__ == "__main__":
    main()
