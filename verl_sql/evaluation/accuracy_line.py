"""One line on the accuracy of some answers, for a recipe's screen.

python -m verl_sql.evaluation.accuracy_line "after the cold start" greedy.jsonl
"""

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from verl_sql.evaluation.statistics import wilson_interval


def accuracy_line(name: str, answers: Iterable[Mapping[str, Any]]) -> str:
    """Execution accuracy by split in percent with 95 % Wilson intervals; each answer has `split` and `acc`."""
    right: dict[str, list[bool]] = {}
    for answer in answers:
        right.setdefault(str(answer["split"]), []).append(answer["acc"] > 0.5)
    return f"verl_sql: {name}: " + "; ".join(_share(split, values) for split, values in right.items())


def _share(split: str, right: list[bool]) -> str:
    """One split."""
    interval = wilson_interval(sum(right), len(right))
    low, high = 100 * interval.low, 100 * interval.high
    return f"EX {100 * sum(right) / len(right):.1f} [{low:.1f}, {high:.1f}] on {len(right)} questions of {split}"


def main() -> None:
    """Print the line."""
    name, file = sys.argv[1:]
    print(accuracy_line(name, map(json.loads, Path(file).read_text(encoding="utf-8").splitlines())))


if __name__ == "__main__":
    main()
