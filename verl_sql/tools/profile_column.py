"""profile_column: what is in a column? Type, rows, distinct values, NULLs, range, and the most common values."""

from collections.abc import Mapping
from typing import Any

from verl_sql.database.introspect import quote_name
from verl_sql.sqltext.quoting import cell_text, neutral
from verl_sql.tools.desk import Desk


async def profile_column(desk: Desk, arguments: Mapping[str, Any]) -> str:
    """The profile of `column` of `table`, two or three lines.

    Raises:
        CallFailed: no such table or column, or a query ran out of time.
    """
    table = desk.table(str(arguments["table"]))
    column = desk.column(table, str(arguments["column"]))
    name, source = quote_name(column.name), quote_name(table.name)
    ((rows, distinct, nulls, least, most, kinds),) = await desk.rows(
        f"SELECT count(*), count(DISTINCT {name}), count(*) - count({name}), min({name}), max({name}), "
        f"group_concat(DISTINCT typeof({name})) FROM {source}",
        1,
    )
    common = await desk.rows(
        f"SELECT {name}, count(*) FROM {source} WHERE {name} IS NOT NULL GROUP BY {name} "
        f"ORDER BY count(*) DESC, {name} LIMIT {desk.limits.common}",
        desk.limits.common,
    )
    nullable = "" if column.nullable else ", not null"
    cell = desk.limits.cell
    lines = [
        f"{neutral(table.name)}.{neutral(column.name)}: {neutral(column.declared_type) or 'no type'}{nullable}; "
        f"{rows} rows, {distinct} distinct, {nulls} NULL; holds {kinds or 'nothing'}"
    ]
    if common:
        lines.append(f"min {cell_text(least, cell)}, max {cell_text(most, cell)}")
        lines.append("most common: " + ", ".join(f"{cell_text(value, cell)} ({n} rows)" for value, n in common))
    return "\n".join(lines)
