"""Spider-DK: 535 of Spider dev's questions changed so that they need domain knowledge (Gan et al., 2021).

One file, `Spider-DK.json` (repository ygan/Spider-DK): Spider's fields and `type`, which the repository's README
explains: 0 means no domain knowledge, 1 to 5 the paper's kinds, 34 both 3 and 4. Three databases are new; the README
says to merge its `database/` with Spider's.
"""

from collections.abc import Iterator
from pathlib import Path

from verl_sql.dataset.example import Example
from verl_sql.dataset.readers.json_file import read_records
from verl_sql.dataset.readers.records import Fields, to_example

SOURCE = "spider_dk"
FIELDS = Fields(gold_sql=("query",), ignored=("sql", "query_toks", "query_toks_no_value", "question_toks"))


def question_files(root: str | Path, split: str) -> tuple[Path, ...]:
    """The dataset's one file, whatever the split is called.

    Raises:
        FileNotFoundError: it is not there.
    """
    file = Path(root) / "Spider-DK.json"
    if not file.is_file():
        raise FileNotFoundError(f"{file} does not exist: is {root} the folder of Spider-DK?")
    return (file,)


def read_spider_dk(root: str | Path, split: str) -> Iterator[Example]:
    """All questions; `type` stays in the details."""
    for position, record in enumerate(read_records(question_files(root, split)[0])):
        yield to_example(record, FIELDS, SOURCE, split, str(position))
