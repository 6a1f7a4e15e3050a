"""Read-only databases: find, introspect, execute, compare.

The names below are imported when they are first asked for, so that a worker process loads only what it needs.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "Catalog": "catalog",
    "Comparison": "execution",
    "DatabaseNotFound": "faults",
    "DatabaseUnusable": "faults",
    "Execution": "execution",
    "Executor": "executor",
    "ExecutorError": "faults",
    "Limits": "limits",
    "Pair": "executor",
    "Status": "execution",
    "resolve_database": "catalog",
    "shared_executor": "executor",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name from the module that defines it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
