"""Spider-Realistic: 508 of Spider dev's questions without the column names they gave away (Deng et al., 2021).

One file, `spider-realistic.json` (Zenodo record 5205322), with Spider's fields. Databases are Spider's.
"""

from collections.abc import Iterator
from pathlib import Path

from verl_sql.dataset.example import Example
from verl_sql.dataset.readers.json_file import read_records
from verl_sql.dataset.readers.records import Fields, to_example

SOURCE = "spider_realistic"
FIELDS = Fields(gold_sql=("query",), ignored=("sql", "query_toks", "query_toks_no_value", "question_toks"))


def question_files(root: str | Path, split: str) -> tuple[Path, ...]:
    """The dataset's one file, whatever the split is called.

    Raises:
        FileNotFoundError: it is not there.
    """
    file = Path(root) / "spider-realistic.json"
    if not file.is_file():
        raise FileNotFoundError(f"{file} does not exist: is {root} the folder of Spider-Realistic?")
    return (file,)


def read_spider_realistic(root: str | Path, split: str) -> Iterator[Example]:
    """All questions, in the file's order."""
    for position, record in enumerate(read_records(question_files(root, split)[0])):
        yield to_example(record, FIELDS, SOURCE, split, str(position))
