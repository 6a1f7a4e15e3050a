"""SynSQL-2.5M: 2.5 million synthetic questions on 16,583 synthetic databases (OmniSQL, Li et al., 2025).

Layout as the dataset's card on the Hugging Face hub gives it (seeklhy/SynSQL-2.5M): `data.json`, one array of about
9 GB, which is read a record at a time, `tables.json`, and `databases/<db_id>/<db_id>.sqlite`. Fields: `db_id`,
`question`, `question_style`, `external_knowledge`, `sql`, `sql_complexity` (Simple, Moderate, Complex, Highly Complex)
and `cot`, a chain of thought, which stays in the details.
"""

from collections.abc import Iterator
from pathlib import Path

from verl_sql.dataset.example import Example
from verl_sql.dataset.readers.json_file import read_records
from verl_sql.dataset.readers.records import Fields, to_example

SOURCE = "synsql"
FIELDS = Fields(gold_sql=("sql",), evidence=("external_knowledge",), difficulty=("sql_complexity",))


def question_files(root: str | Path, split: str) -> tuple[Path, ...]:
    """`data.json`, whatever the split is called.

    Raises:
        FileNotFoundError: it is not there.
    """
    file = Path(root) / "data.json"
    if not file.is_file():
        raise FileNotFoundError(f"{file} does not exist: is {root} the folder of SynSQL-2.5M?")
    return (file,)


def read_synsql(root: str | Path, split: str) -> Iterator[Example]:
    """All questions, in the file's order."""
    for position, record in enumerate(read_records(question_files(root, split)[0])):
        yield to_example(record, FIELDS, SOURCE, split, str(position))
