"""One question of a text-to-SQL dataset, as every reader gives it."""

from dataclasses import dataclass, field
from typing import Any

TEXT2SQL = "text2sql"


@dataclass(frozen=True, slots=True)
class Example:
    """One question and its gold query.

    Attributes:
        source: the dataset, the parquet's `data_source` ("bird", "spider", …).
        split: "train", "dev", "test", ….
        question_id: the dataset's own id where it has one, else the position in its file.
        db_id: the database's name.
        question: the question in natural language.
        evidence: the dataset's hint, or nothing.
        gold_sql: the gold query as the dataset has it, without white space at its ends and semicolons behind it.
        gold_chain: the gold query as a chain of CTEs, or nothing.
        difficulty: the dataset's label, or nothing.
        details: whatever else the dataset says of it; JSON values only.
        schema_text: the schema as the dataset itself gives it, for datasets that come without databases.
        ability: what is asked for: "text2sql", or "table_qa", where `gold_sql` holds an answer in words.
    """

    source: str
    split: str
    question_id: str
    db_id: str
    question: str
    evidence: str
    gold_sql: str
    gold_chain: str = ""
    difficulty: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    schema_text: str = ""
    ability: str = TEXT2SQL
