"""What the execution of a gold query says against it."""

from verl_sql.database.execution import Execution, Status
from verl_sql.dataset.reasons import Finding, Reason

_FAILURES = {
    Status.ERROR: Reason.GOLD_ERROR,
    Status.FORBIDDEN: Reason.GOLD_ERROR,
    Status.TIMEOUT: Reason.GOLD_TIMEOUT,
    Status.TOO_LARGE: Reason.GOLD_TOO_LARGE,
}


def gold_findings(execution: Execution, slow_seconds: float) -> list[Finding]:
    """Findings about one executed gold: it failed, was slow, or returned nothing (no row, or one row of NULLs)."""
    if not execution.ok:
        return [Finding(_FAILURES[execution.status], execution.message)]
    findings = []
    if execution.seconds > slow_seconds:
        findings.append(Finding(Reason.GOLD_SLOW, f"more than {slow_seconds:g} s"))
    if execution.is_empty:
        findings.append(Finding(Reason.GOLD_EMPTY))
    elif execution.all_null and execution.n_rows == 1:
        findings.append(Finding(Reason.GOLD_NULL))
    return findings
