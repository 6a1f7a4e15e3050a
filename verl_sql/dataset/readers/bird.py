"""BIRD in its official layout: train, dev and mini-dev.

A record of `dev.json` (BIRD, CC BY-SA 4.0):
    {"question_id": 0, "db_id": "california_schools", "question": "What is the highest eligible free rate …?",
     "evidence": "Eligible free rate for K-12 = `Free Meal Count (K-12)` / `Enrollment (K-12)`",
     "SQL": "SELECT `Free Meal Count (K-12)` / …", "difficulty": "simple"}
`train.json` has neither ids nor difficulties: the id is the position in the file. A gold chain of CTEs may stand under
`cocte`. Databases lie in `<split>_databases/<db_id>/`, their descriptions in `database_description/` beside the file.
"""

from collections.abc import Iterator
from pathlib import Path

from verl_sql.dataset.example import Example
from verl_sql.dataset.readers.json_file import read_records
from verl_sql.dataset.readers.records import Fields, to_example

SOURCE = "bird"
FIELDS = Fields()
# The official archives unpack into folders with dates in their names (`dev_20240627`, `minidev/MINIDEV`).
_FILES = {"mini_dev": ("mini_dev_sqlite.json",), "mini_train": ("mini_train.json",)}


def question_file(root: str | Path, split: str) -> Path:
    """The JSON of one split, in `root` or up to two folders below.

    Raises:
        FileNotFoundError: none is there; the message says what was looked for.
    """
    names = _FILES.get(split, (f"{split}.json",))
    folder = Path(root)
    for name in names:
        for pattern in (f"{split}/{name}", name, f"*/{name}", f"*/*/{name}"):
            if found := sorted(folder.glob(pattern)):
                return found[0]
    raise FileNotFoundError(f"no {' or '.join(names)} under {folder}: is it the folder of BIRD's split {split!r}?")


def read_bird(root: str | Path, split: str) -> Iterator[Example]:
    """The questions of one split, in the file's order.

    Raises:
        FileNotFoundError: the split's JSON is not there.
        MissingField: a record lacks its question, SQL or db_id.
    """
    file = question_file(root, split)
    for position, record in enumerate(read_records(file)):
        yield to_example(record, FIELDS, SOURCE, split, str(position))
