"""Writes `run.json`, what a recipe ran with: `python -m verl_sql.integration.run_record FILE key=value…`."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

_TOP_LEVEL = ("recipe", "profile", "model")


def run_record(values: Sequence[str], evaluation_files: Sequence[str]) -> dict[str, object]:
    """The record from `key=value` texts: a few keys at the top, the others as `settings`, `seed` as a number.

    Raises:
        ValueError: a text has no `=`.
    """
    pairs = dict(value.split("=", 1) for value in values)
    record: dict[str, object] = {key: pairs.pop(key, "") for key in _TOP_LEVEL}
    record["seed"] = int(pairs.pop("seed", "0"))
    record["settings"] = pairs
    record["evaluation_files"] = list(evaluation_files)
    return record


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point of `python -m verl_sql.integration.run_record`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("values", nargs="*", metavar="key=value")
    parser.add_argument("--evaluation", nargs="*", default=[], help="parquet files the policy is evaluated on")
    options = parser.parse_args(argv)
    text = json.dumps(run_record(options.values, options.evaluation), indent=1, ensure_ascii=False)
    options.file.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
