"""Clinton/Text-to-sql-v1: some 262,000 instructions with CREATE TABLE statements and SQL, without databases.

Fields as loaders of the dataset read them: `instruction` (the question), `input` (CREATE TABLE statements), `response`
(the SQL), `source` (where the record was taken from) and `text` (the three as one prompt, left out). One JSON-lines
file; the dialects are mixed, so that a part does not compile in SQLite: such golds are found against the record's own
CREATE TABLE statements. There is nothing to execute, hence no execution reward: for supervised fine-tuning.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from verl_sql.dataset.example import Example
from verl_sql.dataset.readers.json_file import read_records
from verl_sql.dataset.readers.records import Fields, to_example

SOURCE = "text_to_sql_v1"
FIELDS = Fields(
    question=("instruction",), gold_sql=("response",), db_id=("source",), ignored=("text", "input"), question_id=()
)


def question_files(root: str | Path, split: str) -> tuple[Path, ...]:
    """`root` itself if it is a file, else the JSON-lines or JSON files in it.

    Raises:
        FileNotFoundError: there is none.
    """
    path = Path(root)
    files = [path] if path.is_file() else sorted([*path.glob("*.jsonl"), *path.glob("*.json")])
    if not files:
        raise FileNotFoundError(f"no .jsonl or .json file in {path}: is it the folder of Text-to-sql-v1?")
    return tuple(files)


def read_text_to_sql_v1(root: str | Path, split: str) -> Iterator[Example]:
    """All records; the CREATE TABLE statements become the example's schema text."""
    position = 0
    for file in question_files(root, split):
        for record in read_records(file):
            example = to_example(record, FIELDS, SOURCE, split, str(position))
            yield replace(example, schema_text=str(record.get("input") or "").strip())
            position += 1
