"""Trajectories of an agent loop as JSON lines, one file a process, in the form of verl's dumps and with every turn.

`verl-sql explain --dump FILE --line N --reward progress_sql` reads them, as it reads verl's own dumps.
"""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_trajectory(folder: Path, row: Mapping[str, Any]) -> Path:
    """Append one trajectory to `<folder>/<train|validation>_<process>.jsonl`.

    Args:
        folder: made if it is not there.
        row: plain JSON data; `validate` says which of the two it is. verl's own keys are `input`, `output`, `gts` and
            `step`; `turns` has each message after the prompt.

    Returns:
        The file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{'validation' if row.get('validate') else 'train'}_{os.getpid()}.jsonl"
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(dict(row), ensure_ascii=False, default=str) + "\n")
    return path
