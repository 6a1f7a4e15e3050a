"""run_sql: run a query and show its rows in order, or say what is wrong with it."""

from collections.abc import Mapping
from typing import Any

from verl_sql.database.execution import Execution
from verl_sql.sqltext.quoting import names_text, row_text
from verl_sql.tools.desk import Desk
from verl_sql.tools.problems import problem
from verl_sql.tools.result import CALL_STATUS, CallFailed


async def run_sql(desk: Desk, arguments: Mapping[str, Any]) -> str:
    """Rows of `sql` with the names of its columns; the first ones of a long result, which is said.

    Raises:
        CallFailed: the query did not run to its end; the text says what could mend it.
    """
    sql = str(arguments["sql"])
    execution = await desk.run(sql, desk.limits.rows)
    if not execution.ok:
        raise CallFailed(CALL_STATUS[execution.status], problem(sql, execution, desk.schema, desk.limits.timeout))
    return shown(execution, desk.limits.cell)


def shown(execution: Execution, cell: int) -> str:
    """A result as text: how many rows, the names of the columns, a line a row; cells as SQL literals."""
    rows = execution.rows or ()
    count = f"{execution.n_rows} row" + ("" if execution.n_rows == 1 else "s")
    if len(rows) < execution.n_rows:
        count += f", the first {len(rows)} shown"
    if execution.all_null:
        count += ", every cell is NULL"
    return "\n".join([count, names_text(execution.columns, cell), *(row_text(row, cell) for row in rows)])
