"""One parquet of an SFT or preference set, with a report beside it; sampling goes on after a kill where it stopped."""

import hashlib
import json
import os
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from tqdm import tqdm

from verl_sql.database.catalog import Catalog, DatabaseNotFound
from verl_sql.database.executor import Executor
from verl_sql.dataset.parquet import SFT_SCHEMA, write_rows
from verl_sql.dataset.sft.check import Trace, TraceRules, check_traces
from verl_sql.dataset.sft.preference import PREFERENCE_SCHEMA, preference_rows
from verl_sql.dataset.sft.questions import Question, chain_rows, read_questions
from verl_sql.dataset.sft.rejection import rejection_rows
from verl_sql.dataset.sft.rollouts import Rollout, by_question, read_rollouts
from verl_sql.dataset.sft.settings import SAMPLED, SetKind, SetSettings
from verl_sql.dataset.sft.traces import Teaching, TraceCounts, TraceMaker
from verl_sql.generation.endpoint import EndpointSampler
from verl_sql.generation.sampler import Sampler

PART = 64
Row = dict[str, Any]


def build_set(
    source: Path,
    out: Path,
    settings: SetSettings,
    rollouts: Sequence[Path] = (),
    db_root: Path | None = None,
    workers: int | None = None,
    sampler: Sampler | None = None,
) -> dict[str, Any]:
    """Write one set.

    Args:
        source: a prepared parquet in RL_SCHEMA.
        out: the parquet to write, in SFT_SCHEMA or PREFERENCE_SCHEMA; `<stem>.report.json` beside it.
        settings: what to make.
        rollouts: files of rollouts, for kinds that read them.
        db_root: folder of the databases, for kinds that run SQL; None takes VERL_SQL_DB_ROOT.
        workers: worker processes; None takes all cores.
        sampler: takes the endpoint's place.

    Returns:
        The report.

    Raises:
        FileNotFoundError, ValueError, DatabaseNotFound: something the user must change; also when no row came out.
        SamplingError: the model gave no completions.
    """
    counts: Counter[str] = Counter()
    schema = PREFERENCE_SCHEMA if settings.kind is SetKind.PREFERENCE else SFT_SCHEMA
    if settings.kind in SAMPLED:
        written, told = _sampled(source, out, settings, db_root, workers, sampler)
    else:
        written = write_rows(out, _rows(source, settings, rollouts, db_root, workers, counts), schema)
        told = dict(counts)
    if not written:
        out.unlink()
        raise ValueError(f"no row for a set of kind {settings.kind} came out of {source}: {told or 'nothing fits'}")
    report = {"source": source.name, "settings": settings.as_dict(), "rows": written, "counts": told}
    _write(out.with_suffix(".report.json"), json.dumps(report, indent=1, ensure_ascii=False) + "\n")
    return report


def _rows(
    source: Path,
    settings: SetSettings,
    rollouts: Sequence[Path],
    db_root: Path | None,
    workers: int | None,
    counts: Counter,
) -> Iterator[Row]:
    """The rows of a kind that asks no model."""
    if settings.kind is SetKind.CHAINS:
        yield from chain_rows(read_questions(source))
        return
    if not rollouts:
        raise ValueError(f"a set of kind {settings.kind} needs rollouts=[file.jsonl, …]")
    if settings.kind is SetKind.TRACES:
        groups = by_question(read_rollouts(rollouts), read_questions(source, _catalog(db_root)))
        with Executor(workers, settings.timeout) as executor:
            yield from _right_traces(groups, executor, settings, counts)
        return
    groups = _counted(by_question(read_rollouts(rollouts), read_questions(source)), counts)
    if settings.kind is SetKind.REJECTION:
        yield from rejection_rows(groups, settings.threshold, settings.keep, settings.diversity, counts)
    else:
        yield from preference_rows(groups, settings.pairing, settings.margin, settings.keep, counts)


def _counted(
    groups: Iterator[tuple[Question, list[Rollout]]], counts: Counter
) -> Iterator[tuple[Question, list[Rollout]]]:
    """The groups, counted on the way."""
    for question, found in groups:
        counts["questions"] += 1
        counts["rollouts"] += len(found)
        yield question, found


def _right_traces(
    groups: Iterator[tuple[Question, list[Rollout]]], executor: Executor, settings: SetSettings, counts: Counter
) -> Iterator[Row]:
    """Rows of traces made elsewhere that hold."""
    while batch := list(islice(groups, PART)):
        tried = [(question, rollout) for question, found in batch if question.database for rollout in found]
        traces = [Trace(r.text, q.database, q.gold) for q, r in tried if q.database]
        kept: Counter[str] = Counter()
        seen: set[tuple[str, str]] = set()
        for (question, rollout), fault in zip(tried, check_traces(traces, executor, _rules(settings)), strict=True):
            repeat = (question.key, rollout.text) in seen
            full = settings.keep is not None and kept[question.key] >= settings.keep
            counts[str(fault) if fault else "repeat" if repeat else "spare" if full else "kept"] += 1
            if fault is None and not repeat and not full:
                seen.add((question.key, rollout.text))
                kept[question.key] += 1
                yield question.row(*rollout.messages)


def _sampled(
    source: Path, out: Path, settings: SetSettings, db_root: Path | None, workers: int | None, sampler: Sampler | None
) -> tuple[int, dict[str, Any]]:
    """Sample traces part by part; the number of rows and what became of the completions."""
    if sampler is None and not settings.endpoint.get("base_url"):
        raise ValueError(f"a set of kind {settings.kind} needs a model: endpoint.base_url=…")
    counts = TraceCounts()
    parts = out.parent / ".sft" / _fingerprint(source, settings)
    parts.mkdir(parents=True, exist_ok=True)
    with Executor(workers, settings.timeout) as executor:
        keep = settings.keep if settings.keep is not None else settings.sampling.n * 2
        maker = TraceMaker(
            sampler or EndpointSampler(**settings.endpoint),
            executor,
            Teaching(settings.kind.value),
            settings.sampling,
            _rules(settings),
            keep,
        )
        rows = _in_parts(read_questions(source, _catalog(db_root)), maker, parts, counts)
        written = write_rows(out, rows, SFT_SCHEMA)
    shutil.rmtree(parts.parent, ignore_errors=True)
    return written, counts.as_dict()


def _in_parts(questions: Iterator[Question], maker: TraceMaker, parts: Path, counts: TraceCounts) -> Iterator[Row]:
    """The rows; a part that an earlier run left is read instead of sampled."""
    with tqdm(desc=str(maker.teaching), unit=" questions", disable=None) as bar:
        for number in range(10**9):
            batch = list(islice(questions, PART))
            if not batch:
                return
            file = parts / f"{number:06d}.json"
            if not file.is_file():
                own = TraceCounts()
                rows = list(maker.make(batch, own))
                told = [own.questions, own.answered, dict(own.fates)]
                _write(file, json.dumps({"rows": rows, "counts": told}, ensure_ascii=False))
            content = json.loads(file.read_text(encoding="utf-8"))
            asked, answered, fates = content["counts"]
            counts.questions += asked
            counts.answered += answered
            counts.fates.update(fates)
            yield from content["rows"]
            bar.update(len(batch))


def _rules(settings: SetSettings) -> TraceRules:
    """What is asked of a trace."""
    return TraceRules(settings.style, settings.comparator, settings.reasoning, settings.timeout)


def _catalog(db_root: Path | None) -> Catalog:
    """The folder of databases.

    Raises:
        DatabaseNotFound: none is named, or it is no folder.
    """
    root = db_root or os.environ.get("VERL_SQL_DB_ROOT")
    if not root:
        raise DatabaseNotFound("no folder of databases: give db_root=… or set VERL_SQL_DB_ROOT")
    return Catalog(root)


def _fingerprint(source: Path, settings: SetSettings) -> str:
    """What changes when the source or the settings do."""
    if not source.is_file():
        raise FileNotFoundError(f"no parquet {source}; prepare one with data_prep first")
    state = source.stat()
    text = json.dumps([source.name, state.st_size, state.st_mtime_ns, settings.as_dict()], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _write(file: Path, text: str) -> None:
    """Write a file whole or not at all."""
    partial = file.with_name(f".{file.name}.partial")
    partial.write_text(text, encoding="utf-8")
    os.replace(partial, file)
