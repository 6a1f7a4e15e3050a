"""Everything that can be wrong with a run's inputs, looked at before any process is started.

    python -m verl_sql.integration.preflight --train F --val F... --db-root D [--gold-cache F] [--model M]
        [--max-prompt-length N [--longest-to F]]

Exit status 2 and one sentence for the first thing that is wrong. verl would find the same faults minutes later, in a
worker, and some of them never: a prompt that is too long is dropped without a word.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from verl_sql.database.catalog import Catalog
from verl_sql.database.faults import DatabaseNotFound
from verl_sql.database.gold_cache import GoldCache, chosen_gold_cache
from verl_sql.dataset.parquet import RL_SCHEMA, missing_columns, read_rows

SHOWN = 20


class PreflightError(Exception):
    """Something the user has to change, in one sentence."""


def check_parquet(path: Path) -> None:
    """The file is there and has our columns.

    Raises:
        PreflightError: it is not, or one is missing or of another type.
    """
    if not path.is_file():
        raise PreflightError(f"there is no parquet {path}; write one with data_prep")
    missing = missing_columns(path, RL_SCHEMA)
    if missing:
        raise PreflightError(
            f"{path} lacks the column {missing[0]!r} or has it in another type: see docs/parquet_schema.md"
        )


def check_databases(db_root: str, paths: Sequence[Path]) -> int:
    """Every database that the parquet files name is under the root; returns how many there are.

    Raises:
        PreflightError: the root is no folder, or a database is missing.
    """
    try:
        catalog = Catalog(db_root)
        db_ids = {row["extra_info"]["db_id"] for path in paths for row in read_rows(path)}
        for db_id in sorted(db_ids):
            catalog.path(db_id)
    except DatabaseNotFound as error:
        raise PreflightError(str(error)) from error
    return len(db_ids)


def check_golds(cache: GoldCache, db_root: str, paths: Sequence[Path], timeout: float = 30.0) -> list[str]:
    """Sentences about golds that are known to fail or to return nothing, with their questions' ids.

    Every database is read whole, so that a cache that other databases gave is noticed: a warning names them.
    """
    catalog, failing, empty = Catalog(db_root), [], []
    for info, gold in ((row["extra_info"], row["reward_model"]["ground_truth"]) for f in paths for row in read_rows(f)):
        result = cache.get(catalog.path(info["db_id"]), gold)
        if result is not None and result.failure(timeout) is not None:
            failing.append(f"{info['split']}/{info['question_id']}")
        elif result is not None and result.is_empty:
            empty.append(f"{info['split']}/{info['question_id']}")
    return [_sentence("fail, every completion of theirs gets 0", failing), _sentence("return nothing", empty)]


def _sentence(what: str, ids: list[str]) -> str:
    """How many golds are known for something, and the first ids."""
    shown = ", ".join(ids[:SHOWN]) + (", …" if len(ids) > SHOWN else "")
    return f"{len(ids)} golds are known to {what}{': ' if ids else ''}{shown}"


def check_model(model: str) -> None:
    """A local model folder holds a config; a hub name (`owner/name` that is no path here) is left to transformers.

    Raises:
        PreflightError: it looks like a path and is none, or the folder has no config.json.
    """
    folder = Path(model).expanduser()
    looks_local = model.startswith((".", "/", "~")) or model.count("/") != 1
    if not folder.is_dir():
        if looks_local:
            raise PreflightError(f"there is no model folder {model}; set MODEL to one, or to a name on the hub")
        return
    if not (folder / "config.json").is_file():
        raise PreflightError(f"{model} is no model: it has no config.json")


def prompt_lengths(model: str, path: Path) -> Iterator[int]:
    """Tokens of each prompt of a file, the generation prompt among them."""
    from verl_sql.dataset.prompting import token_counter

    count = token_counter(model)
    return (count(row["prompt"]) for row in read_rows(path))


def check_lengths(model: str, paths: Sequence[Path], limit: int) -> tuple[int, str]:
    """The longest prompt's tokens rounded up to a multiple of 32, and a sentence on how long the prompts are.

    Args:
        model: the policy, for its tokenizer.
        paths: parquet files.
        limit: tokens that a prompt may have; 0 for that longest one.

    Raises:
        PreflightError: some are longer than `limit`.
    """
    lengths = [length for path in paths for length in prompt_lengths(model, path)]
    longest = (max(lengths, default=0) + 31) // 32 * 32
    limit = limit or longest
    over = sum(length > limit for length in lengths)
    if over:
        raise PreflightError(
            f"{over} of {len(lengths)} prompts are longer than max_prompt_length={limit} tokens (the longest has "
            f"{max(lengths)}): raise MAX_PROMPT_LENGTH, or drop them with settings.max_prompt_tokens in data_prep"
        )
    return longest, f"all {len(lengths)} prompts kept, the longest has {max(lengths, default=0)} of {limit} tokens"


def tell_golds(gold_cache: str | None, db_root: str, paths: Sequence[Path]) -> None:
    """Print what the file of gold results says about the files' golds, if there is one.

    Raises:
        PreflightError: it was named and is not there.
    """
    try:
        cache = chosen_gold_cache(gold_cache)
    except FileNotFoundError as error:
        raise PreflightError(str(error)) from error
    for line in check_golds(cache, db_root, paths) if cache is not None else ():
        print(f"preflight: {line}")


def tell_lengths(model: str, paths: Sequence[Path], limit: int, longest_to: Path | None) -> None:
    """Print how long the prompts are and note the longest one's tokens.

    Raises:
        PreflightError: some are longer than `limit`.
    """
    longest, sentence = check_lengths(model, paths, limit)
    if longest_to is not None:
        longest_to.write_text(f"{longest}\n", encoding="utf-8")
    print(f"preflight: {sentence}")


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `python -m verl_sql.integration.preflight`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--train", type=Path, action="append", default=[])
    parser.add_argument("--val", type=Path, action="append", default=[])
    parser.add_argument("--db-root")
    parser.add_argument("--gold-cache", help="golds.jsonl of data_prep; VERL_SQL_GOLD_CACHE by default")
    parser.add_argument("--model")
    parser.add_argument("--max-prompt-length", type=int, help="tokens; 0 for the longest prompt's")
    parser.add_argument("--longest-to", type=Path, help="file that gets the longest prompt's tokens, rounded up")
    options = parser.parse_args(argv)
    files = [*options.train, *options.val]
    try:
        for path in files:
            check_parquet(path)
        if options.db_root is not None:
            print(f"preflight: {check_databases(options.db_root, files)} databases found under {options.db_root}")
            tell_golds(options.gold_cache, options.db_root, files)
        if options.model is not None:
            check_model(options.model)
        if options.max_prompt_length is not None:
            tell_lengths(options.model, files, options.max_prompt_length, options.longest_to)
    except PreflightError as error:
        print(f"verl_sql: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
