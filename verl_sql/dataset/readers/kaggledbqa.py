"""KaggleDBQA: questions on eight real databases from Kaggle (Lee et al., 2021).

Layout and fields as the dataset's README gives them (repository Chia-Hsuan-Lee/KaggleDBQA): `examples/` holds one JSON
a database, with Spider's fields, and its division into `<db>_test.json` and `<db>_fewshot.json`; the databases lie in
`databases/<db_id>/<db_id>.sqlite`. Splits: `test`, `fewshot`, and `all` for the whole files.
"""

from collections.abc import Iterator
from pathlib import Path

from verl_sql.dataset.example import Example
from verl_sql.dataset.readers.json_file import read_records
from verl_sql.dataset.readers.records import Fields, to_example

SOURCE = "kaggledbqa"
FIELDS = Fields(gold_sql=("query",), ignored=("sql", "query_toks", "query_toks_no_value", "question_toks"))
_PARTS = ("_test", "_fewshot")


def question_files(root: str | Path, split: str) -> tuple[Path, ...]:
    """The JSON files of one split, by name.

    Raises:
        FileNotFoundError: there is none.
    """
    folder = Path(root) / "examples"
    files = sorted(folder.glob("*.json" if split == "all" else f"*_{split}.json"))
    if split == "all":
        files = [file for file in files if not file.stem.endswith(_PARTS)]
    if not files:
        raise FileNotFoundError(f"no examples of split {split!r} in {folder}: is {root} the folder of KaggleDBQA?")
    return tuple(files)


def read_kaggledbqa(root: str | Path, split: str) -> Iterator[Example]:
    """The questions of one split, file by file; ids are `<file>-<position>`."""
    for file in question_files(root, split):
        for position, record in enumerate(read_records(file)):
            yield to_example(record, FIELDS, SOURCE, split, f"{file.stem}-{position}")
