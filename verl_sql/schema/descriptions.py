"""BIRD's `database_description/*.csv`: what each table and column means, in every broken shape the files have.

Bytes are read as UTF-8 (with or without a BOM), else as cp1252. Cells may span lines, headers may be empty or padded,
column names may carry spaces at their ends. A row about a column that does not exist is a problem to report, no error.
"""

import csv
import io
from dataclasses import dataclass, field
from pathlib import Path

from verl_sql.database.introspect import DatabaseSchema

NAME_HEADERS = ("original_column_name", "column_name")


@dataclass(frozen=True, slots=True)
class ColumnDescription:
    """One CSV row: the readable name, the meaning and the meaning of the values, white space collapsed."""

    name: str = ""
    meaning: str = ""
    values: str = ""


@dataclass(frozen=True, slots=True)
class Descriptions:
    """Descriptions of one database, looked up without regard to case or surrounding spaces.

    Attributes:
        columns: (table, column), both folded by `fold_name`, -> description.
        tables: folded table name -> comment.
        with_values: whether comments also say what the values mean (longer prompts).
    """

    columns: dict[tuple[str, str], ColumnDescription] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    with_values: bool = False

    def table_comment(self, table: str) -> str:
        """The comment of a table, or nothing."""
        return self.tables.get(fold_name(table), "") if self.tables else ""

    def column(self, table: str, column: str) -> ColumnDescription:
        """The description of a column; an empty one when there is none."""
        return self.columns.get((fold_name(table), fold_name(column)), ColumnDescription())

    def column_comment(self, table: str, column: str) -> str:
        """The meaning of a column, else its readable name; with what its values mean if asked for."""
        if not self.columns:
            return ""
        found = self.column(table, column)
        comment = found.meaning or (found.name if fold_name(found.name) != fold_name(column) else "")
        if self.with_values and found.values:
            comment = f"{comment} ({found.values})" if comment else found.values
        return comment

    def problems(self, schema: DatabaseSchema) -> list[str]:
        """Descriptions of columns that `schema` does not have, one line each."""
        known = {(fold_name(t.name), fold_name(c.name)) for t in schema.tables for c in t.columns}
        return [
            f"{t}.{c}: described, but there is no such column" for t, c in sorted(self.columns) if (t, c) not in known
        ]


def fold_name(name: str) -> str:
    """A name for comparing: no surrounding spaces, no case."""
    return name.strip().casefold()


def decode(raw: bytes) -> str:
    """Text of a description file: UTF-8 with or without BOM, else cp1252 (bytes cp1252 does not know are escaped)."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "backslashreplace")


def load_descriptions(folder: str | Path, with_values: bool = False) -> Descriptions:
    """Read every CSV of a `database_description` folder; the file's name is the table's name.

    Raises:
        FileNotFoundError: there is no such folder.
    """
    directory = Path(folder)
    if not directory.is_dir():
        raise FileNotFoundError(f"description folder {directory} does not exist")
    columns: dict[tuple[str, str], ColumnDescription] = {}
    for file in sorted(directory.iterdir(), key=lambda f: f.name):
        if file.suffix.lower() == ".csv" and not file.name.startswith("."):
            for name, description in read_description_file(file).items():
                columns.setdefault((fold_name(file.stem), name), description)
    return Descriptions(columns, with_values=with_values)


def read_description_file(file: str | Path) -> dict[str, ColumnDescription]:
    """Folded column name -> description, from one CSV; rows without a column name are skipped."""
    rows = csv.reader(io.StringIO(decode(Path(file).read_bytes()), newline=""))
    header = [fold_name(cell) for cell in next(rows, [])]
    found: dict[str, ColumnDescription] = {}
    for row in rows:
        cells = {name: _one_line(cell) for name, cell in zip(header, row, strict=False) if name}
        name = next((cells[h] for h in NAME_HEADERS if cells.get(h)), "")
        if name:
            found.setdefault(fold_name(name), _description(cells))
    return found


def _description(cells: dict[str, str]) -> ColumnDescription:
    """The description in one row's cells."""
    return ColumnDescription(
        cells.get("column_name", ""), cells.get("column_description", ""), cells.get("value_description", "")
    )


def _one_line(cell: str) -> str:
    """The cell with all white space collapsed."""
    return " ".join(cell.split())
