"""Your own questions: `<split>.jsonl` (or `.json`) beside a folder of databases in any layout the catalog knows.

A record:
    {"db_id": "shop", "question": "How many orders?", "SQL": "SELECT count(*) FROM orders", "evidence": "optional"}
Optional too: `question_id`, `difficulty`, `cocte` (the gold as a chain of CTEs); anything else is kept in the details.
The gold may also be called `sql` or `query`.
"""

from collections.abc import Iterator
from pathlib import Path

from verl_sql.dataset.example import Example
from verl_sql.dataset.readers.json_file import read_records
from verl_sql.dataset.readers.records import Fields, to_example

SOURCE = "questions"
FIELDS = Fields()


def question_files(root: str | Path, split: str) -> tuple[Path, ...]:
    """`<split>.jsonl` or `<split>.json` in `root`; for the split `questions`, that is `questions.jsonl`.

    Raises:
        FileNotFoundError: neither is there.
    """
    for suffix in (".jsonl", ".json"):
        if (file := Path(root) / f"{split}{suffix}").is_file():
            return (file,)
    raise FileNotFoundError(f"no {split}.jsonl or {split}.json in {root}")


def read_questions(root: str | Path, split: str) -> Iterator[Example]:
    """The questions of one file, in its order."""
    for position, record in enumerate(read_records(question_files(root, split)[0])):
        yield to_example(record, FIELDS, SOURCE, split, str(position))
