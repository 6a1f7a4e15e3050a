"""Products of a recipe's stages, kept by what they were made from: a second run starts where something changed.

    python -m verl_sql.integration.stage_cache take CACHE STAGE FOLDER INPUT...
    python -m verl_sql.integration.stage_cache keep CACHE FOLDER --seconds N

`take` puts an earlier run's product into FOLDER (exit status 0) or makes FOLDER empty, with a `stage.json` that says
what will be made there and from what (exit status 3); `keep` enters a finished FOLDER. An INPUT is `name=value`, or
`name=@path` for what lies there: an earlier stage's folder counts as that stage's key, anything else by its content.

A product lies at CACHE/<stage>/<key> and shares its files with the runs that made and took it by hard links, so that
any of them may be deleted; on another file system it is copied. It gets that name only when it is whole.
"""

import argparse
import hashlib
import json
import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from verl_sql.evaluation.summary import installed_versions

RECORD = "stage.json"
NOT_THERE = 3
READ_WHOLE = 8 * 2**20
"""Bytes up to which a file counts by its content; above, by its size and time of change: weights, BIRD's databases."""


def digest(path: Path) -> str:
    """What stands for a file or folder in a key: a stage's key, or a hash of contents and of names within a folder.

    Byte code is passed over. An empty text when nothing is there.
    """
    if (record := path / RECORD).is_file():
        return str(json.loads(record.read_text(encoding="utf-8"))["key"])
    if path.is_file():
        return _file_digest(path)
    total = hashlib.sha256()
    for file in sorted(_files(path)):
        total.update(f"{file.relative_to(path)}\0{_file_digest(file)}\n".encode("utf-8", "surrogateescape"))
    return total.hexdigest()[:16] if path.is_dir() else ""


def read_inputs(texts: Sequence[str]) -> dict[str, str]:
    """Inputs as name -> value, with versions of Python, SQLite and the training packages under `versions`.

    Raises:
        ValueError: a text has no `=`.
    """
    pairs = [text.partition("=") for text in texts]
    if wrong := [name for name, equals, _ in pairs if not equals]:
        raise ValueError(f"an input of a stage is name=value or name=@path, not {wrong[0]!r}")
    found = {name: digest(Path(value[1:])) if value.startswith("@") else value for name, _, value in pairs}
    return {**found, "versions": json.dumps({**installed_versions(), "sqlite": sqlite3.sqlite_version})}


def key_of(stage: str, inputs: Mapping[str, str]) -> str:
    """The name of a product in the cache, 16 hexadecimal digits."""
    return hashlib.sha256(json.dumps([stage, dict(inputs)], sort_keys=True).encode()).hexdigest()[:16]


def take(cache: Path, stage: str, folder: Path, inputs: Mapping[str, str]) -> bool:
    """Put the product of these inputs into `folder`; without one, prepare the folder for `keep`.

    Args:
        cache: the folder of products.
        stage: the stage's name.
        folder: where the product belongs in this run; it must not be there yet.
        inputs: as `read_inputs` gives them.

    Returns:
        Whether there was a product.
    """
    product = cache / stage / key_of(stage, inputs)
    if (product / RECORD).is_file():
        _link_tree(product, folder)
        return True
    folder.mkdir(parents=True)
    _write_record(folder, {"stage": stage, "key": product.name, "inputs": dict(inputs)})
    return False


def keep(cache: Path, folder: Path, seconds: int) -> Path:
    """Enter a finished folder into the cache; of two equal products the first one stays.

    Returns:
        The product's folder in the cache.
    """
    record = read_record(folder)
    _write_record(folder, {**record, "seconds": seconds, "finished": datetime.now().isoformat(timespec="seconds")})
    product = cache / str(record["stage"]) / str(record["key"])
    partial = product.with_name(f".{product.name}.{os.getpid()}")
    _link_tree(folder, partial)
    try:
        partial.rename(product)
    except OSError:  # another run was faster
        shutil.rmtree(partial)
        if not product.is_dir():
            raise
    return product


def read_record(folder: Path) -> dict[str, Any]:
    """What a stage's folder was made from: stage, key, inputs and, once it is finished, seconds and finished."""
    return dict(json.loads((folder / RECORD).read_text(encoding="utf-8")))


def changed_inputs(cache: Path, stage: str, inputs: Mapping[str, str]) -> list[str]:
    """Names of the inputs in which the nearest earlier product differs; empty when there is none."""
    earlier = [read_record(record.parent)["inputs"] for record in (cache / stage).glob(f"[!.]*/{RECORD}")]
    differences = [sorted(k for k in {*inputs, *old} if inputs.get(k) != old.get(k)) for old in earlier]
    return min(differences, key=len, default=[])


def _files(folder: Path) -> Iterator[Path]:
    """Files below a folder, byte code left out."""
    for path, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (Path(path, name) for name in names)


def _file_digest(file: Path) -> str:
    """A file's content, or size and time of change of a large one."""
    state = file.stat()
    if state.st_size > READ_WHOLE:
        return f"{state.st_size}/{state.st_mtime_ns}"
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16]


def _link_tree(source: Path, target: Path) -> None:
    """The same tree at another place: hard links where they are possible, copies where not."""

    def link(one: str, other: str) -> str:
        try:
            os.link(one, other)
        except OSError:
            shutil.copy2(one, other)
        return other

    shutil.copytree(source, target, symlinks=True, copy_function=link)


def _write_record(folder: Path, record: Mapping[str, Any]) -> None:
    """Write stage.json; a new file, since an old one may be shared with other runs."""
    partial = folder / f".{RECORD}"
    partial.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(folder / RECORD)


def _take(options: argparse.Namespace) -> int:
    """`take` for the command line, with one line about what was found."""
    inputs = read_inputs(options.inputs)
    if take(options.cache, options.stage, options.folder, inputs):
        record = read_record(options.folder)
        print(
            f"── {options.stage}: nothing it depends on has changed, taken from the run of {record['finished']}", end=""
        )
        print(f" ({record['seconds']} s then)")
        return 0
    if changed := changed_inputs(options.cache, options.stage, inputs):
        print(f"── {options.stage}: not as in earlier runs: {', '.join(changed)}")
    return NOT_THERE


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `python -m verl_sql.integration.stage_cache`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    taking, keeping = commands.add_parser("take"), commands.add_parser("keep")
    for command in (taking, keeping):
        command.add_argument("cache", type=Path)
        if command is taking:
            command.add_argument("stage")
        command.add_argument("folder", type=Path)
    taking.add_argument("inputs", nargs="*", metavar="name=value or name=@path")
    keeping.add_argument("--seconds", type=int, required=True)
    options = parser.parse_args(argv)
    if options.command == "take":
        return _take(options)
    keep(options.cache, options.folder, options.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
