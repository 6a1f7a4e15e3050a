"""The limits one pool of workers runs under."""

from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What a query may use. Seconds are wall clock, sizes are bytes unless the name says otherwise.

    Two caps bound a result. Up to `max_rows` and `max_bytes` it is read and compared exactly, and only its first
    `keep_rows` (and `keep_bytes`) cross the process boundary, for display. Beyond them the status is TOO_LARGE.

    Attributes:
        grace: how long a query may overrun its deadline before its worker is killed. A single built-in function
            (hex of a huge blob) cannot be interrupted, only killed.
        compare_seconds: how long comparing two results may take before the worker is killed.
        max_rows: rows of one result.
        max_bytes: memory of one result's values as Python objects.
        keep_bytes: memory of the rows that are handed back.
        max_cell_bytes: one value, one row, one intermediate string or blob (SQLITE_LIMIT_LENGTH).
        max_sql_bytes: length of one SQL text in UTF-8.
        worker_memory_mb: address space of one worker, in MiB (RLIMIT_AS).
        recycle_memory_mb: a worker whose resident memory grew beyond this, in MiB, is replaced when idle.
        remembered_mb: memory for remembered results in one worker, in MiB.
        connections: open databases in one worker.
        backwards: rows are read from the last to the first where no ORDER BY says otherwise, see `backwards.py`.
    """

    grace: float = 0.5
    compare_seconds: float = 20.0
    max_rows: int = 1_000_000
    max_bytes: int = 192 * MIB
    keep_bytes: int = 4 * MIB
    max_cell_bytes: int = 16 * MIB
    max_sql_bytes: int = 1_000_000
    worker_memory_mb: int = 1024
    recycle_memory_mb: int = 512
    remembered_mb: int = 128
    connections: int = 32
    backwards: bool = False
