"""Spider in its official layout: train (`train_spider.json` and `train_others.json`), dev and test.

A record of `dev.json` (Spider, CC BY-SA 4.0):
    {"db_id": "concert_singer", "query": "SELECT count(*) FROM singer", "question": "How many singers do we have?",
     "query_toks": […], "query_toks_no_value": […], "question_toks": […], "sql": {…}}
Records have no id: the position in the file is one (with the file's name before it in train, which has two files).
`sql` is Spider's own parse; it and the token lists are left out. Databases lie in `database/<db_id>/<db_id>.sqlite`.
"""

from collections.abc import Iterator
from pathlib import Path

from verl_sql.dataset.example import Example
from verl_sql.dataset.readers.json_file import read_records
from verl_sql.dataset.readers.records import Fields, to_example

SOURCE = "spider"
FIELDS = Fields(gold_sql=("query",), ignored=("sql", "query_toks", "query_toks_no_value", "question_toks"))
_FILES = {"train": ("train_spider.json", "train_others.json")}


def question_files(root: str | Path, split: str) -> tuple[Path, ...]:
    """The JSON files of one split that are there; `train_others.json` may be missing, the first file may not.

    Raises:
        FileNotFoundError: the split's first file is not there.
    """
    files = [Path(root) / name for name in _FILES.get(split, (f"{split}.json",))]
    if not files[0].is_file():
        raise FileNotFoundError(f"{files[0]} does not exist: is {root} the folder of Spider?")
    return tuple(file for file in files if file.is_file())


def read_spider(root: str | Path, split: str) -> Iterator[Example]:
    """The questions of one split, in the order of its files.

    Raises:
        FileNotFoundError: the split's JSON is not there.
        MissingField: a record lacks its question, query or db_id.
    """
    files = question_files(root, split)
    for file in files:
        prefix = f"{file.stem}-" if split in _FILES else ""
        for position, record in enumerate(read_records(file)):
            yield to_example(record, FIELDS, SOURCE, split, f"{prefix}{position}")
