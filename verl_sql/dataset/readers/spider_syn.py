"""Spider-Syn: Spider's questions with schema words replaced by synonyms (Gan et al., 2021).

Files `train_spider.json` and `dev.json` (repository ygan/Spider-Syn, folder `Spider-Syn/`); the fields, as other
projects' loaders read them: `db_id`, `query`, `SpiderQuestion` (the original) and `SpiderSynQuestion` (the one asked).
Databases are Spider's.
"""

from collections.abc import Iterator
from pathlib import Path

from verl_sql.dataset.example import Example
from verl_sql.dataset.readers.json_file import read_records
from verl_sql.dataset.readers.records import Fields, to_example

SOURCE = "spider_syn"
FIELDS = Fields(
    question=("SpiderSynQuestion",),
    gold_sql=("query",),
    ignored=("sql", "query_toks", "query_toks_no_value", "question_toks"),
)
_FILES = {"train": "train_spider.json"}


def question_files(root: str | Path, split: str) -> tuple[Path, ...]:
    """The JSON of one split, in `root` or in `Spider-Syn/` below it.

    Raises:
        FileNotFoundError: neither is there.
    """
    name = _FILES.get(split, f"{split}.json")
    for file in (Path(root) / "Spider-Syn" / name, Path(root) / name):
        if file.is_file():
            return (file,)
    raise FileNotFoundError(f"no {name} under {root}: is it the folder of Spider-Syn?")


def read_spider_syn(root: str | Path, split: str) -> Iterator[Example]:
    """The questions of one split; `SpiderQuestion` stays in the details."""
    for position, record in enumerate(read_records(question_files(root, split)[0])):
        yield to_example(record, FIELDS, SOURCE, split, str(position))
