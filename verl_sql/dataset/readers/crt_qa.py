"""CRT-QA: questions on Wikipedia tables that need several steps, answered in words (Zhang et al., 2023).

Layout as the dataset's README gives it (repository zzh-SJTU/CRT-QA): `dataset.json` maps the name of a CSV file to its
questions, with `Question name`, `Title`, `step1` … `step4`, `Answer`, `Directness` and `Composition Type`; the tables
lie in `all_csv/`. They are TabFact's, whose columns are separated by `#`. There is no SQL: `gold_sql` holds the answer,
the ability is `table_qa`, and the answer is judged by a model (Sparks of Tabular Reasoning).
"""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

from verl_sql.dataset.example import Example
from verl_sql.dataset.readers.records import MissingField

SOURCE = "crt_qa"
ABILITY = "table_qa"
TABLE_FOLDER = "all_csv"


def question_files(root: str | Path, split: str) -> tuple[Path, ...]:
    """`dataset.json`, or `<split>.json` for the file of unanswerable questions.

    Raises:
        FileNotFoundError: it is not there.
    """
    for name in (f"{split}.json", "dataset.json"):
        if (file := Path(root) / name).is_file():
            return (file,)
    raise FileNotFoundError(f"no dataset.json in {root}: is it the folder of CRT-QA?")


def read_crt_qa(root: str | Path, split: str) -> Iterator[Example]:
    """All questions, table by table.

    Raises:
        FileNotFoundError: a table's CSV is not there.
        MissingField: a question lacks its text or its answer.
    """
    content = json.loads(question_files(root, split)[0].read_text(encoding="utf-8"))
    for table, questions in content.items():
        text = table_text(Path(root) / TABLE_FOLDER / table)
        for position, record in enumerate(questions):
            yield _example(record, table, f"{table}-{position}", split, text)


def table_text(file: Path) -> str:
    """A table as `a | b | c` lines, the header first; separated by `#` if its header has one, else by commas.

    Raises:
        FileNotFoundError: there is no such file.
    """
    content = file.read_text(encoding="utf-8-sig")
    header = content.split("\n", 1)[0]
    rows = csv.reader(io.StringIO(content, newline=""), delimiter="#" if "#" in header else ",")
    return "\n".join(" | ".join(cell.strip() for cell in row) for row in rows if row)


def _example(record: dict, table: str, number: str, split: str, text: str) -> Example:
    """The example in one question."""
    missing = [name for name in ("Question name", "Answer") if record.get(name) is None]
    if missing:
        raise MissingField(f"question {number} has no {' and no '.join(missing)}")
    title = str(record.get("Title") or "")
    return Example(
        source=SOURCE,
        split=split,
        question_id=number,
        db_id=table,
        question=str(record["Question name"]).strip(),
        evidence="",
        gold_sql=str(record["Answer"]).strip(),
        details={key: value for key, value in record.items() if key not in ("Question name", "Answer")},
        schema_text=f"{title}\n{text}" if title else text,
        ability=ABILITY,
    )
