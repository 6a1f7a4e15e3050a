"""A digest of a result that is equal exactly when `bird_set` calls two results equal."""

import hashlib
from collections.abc import Iterable
from typing import Any


def result_digest(rows: Iterable[tuple[Any, ...]]) -> str:
    """Hex digest of the distinct rows, whatever their order: equal sets of row tuples give equal digests.

    Cells are written so that what Python calls equal is written alike (1 and 1.0, but not 1 and '1' nor '1' and b'1').
    """
    digest = hashlib.blake2b(digest_size=16)
    for row in sorted({_row_text(row) for row in rows}):
        digest.update(b"%d:" % len(row))
        digest.update(row)
    return digest.hexdigest()


def _row_text(row: tuple[Any, ...]) -> bytes:
    """One row as bytes, unambiguously."""
    return b"".join(b"%d:%b" % (len(cell), cell) for cell in map(_cell_text, row))


def _cell_text(cell: Any) -> bytes:
    """One cell as bytes, its type in front."""
    if cell is None:
        return b"n"
    if isinstance(cell, str):
        return b"s" + cell.encode("utf-8", "surrogatepass")
    if isinstance(cell, bytes):
        return b"b" + cell
    if isinstance(cell, float) and not cell.is_integer():
        return b"f" + cell.hex().encode()
    return b"i%d" % int(cell)
