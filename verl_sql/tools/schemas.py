"""How the tools are described to models: OpenAI function schemas, which chat templates render into the prompt."""

from typing import Any


def _schema(name: str, description: str, required: tuple[str, ...], **parameters: str) -> dict[str, Any]:
    """One function schema; every parameter is a string."""
    properties = {key: {"type": "string", "description": text} for key, text in parameters.items()}
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": {"type": "object", "properties": properties, "required": list(required)},
        },
    }


SCHEMAS: dict[str, dict[str, Any]] = {
    schema["function"]["name"]: schema
    for schema in (
        _schema(
            "run_sql",
            "Run one SQLite SELECT and see its rows, or the error.",
            ("sql",),
            sql="The query.",
        ),
        _schema(
            "search_literal",
            "Find how a value is spelled in the database: the stored text values nearest to some words.",
            ("text",),
            text="The words to look for.",
            table="Only in this table.",
            column="Only in this column.",
        ),
        _schema(
            "profile_column",
            "See a column's type, number of distinct values and NULLs, smallest, largest and most common values.",
            ("table", "column"),
            table="The table.",
            column="The column.",
        ),
        _schema(
            "table_schema",
            "See the columns of a table with types, meanings, example values and foreign keys; without a table, all "
            "table names.",
            (),
            table="The table.",
        ),
    )
}
"""By name, in the order in which a prompt lists them."""
