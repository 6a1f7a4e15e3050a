"""`verl-sql score`: compare predicted with gold queries, line by line, as the official evaluators do.

Input, one JSON object a line: {"pair_id": …, "db_id": …, "gold": SQL, "pred": SQL}; further keys are ignored, and
`--db-id` stands in where db_id is missing.
Output, in the input's order: {"pair_id", "gold_status", "pred_status", and bird_set, bag, ordered, test_suite,
soft_f1, cp, cr, tc as far as they were asked for}; cp, cr and tc are null where the gold query failed.

A run that was interrupted, even by SIGKILL, goes on where it stopped and leaves the same bytes as an uninterrupted one.
A line that is no such object, or whose database is not found, is named on standard error by its number and left out.
"""

import fcntl
import json
import os
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from verl_sql.database.catalog import Catalog
    from verl_sql.database.execution import Comparison

ALL = "bird_set,bag,ordered,test_suite,soft_f1,qatch"
FLUSH_SECONDS = 0.5
"""How long scored lines may wait in this process's buffer: what a kill can cost."""


class ScoreError(Exception):
    """The run cannot start or go on; the message says why."""


@dataclass(frozen=True, slots=True)
class Request:
    """One good input line: its number (from 1), and what it asks for."""

    number: int
    pair_id: Any
    database: Path
    gold: str
    pred: str
    variants: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts of one run: lines scored now, lines found scored already, lines left out."""

    scored: int
    resumed: int
    bad: int


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def score(
        pairs: Annotated[Path, typer.Option(help="JSON lines with pair_id, db_id, gold, pred.")],
        db_root: Annotated[list[Path], typer.Option(help="Root of the databases; may be repeated.")],
        out: Annotated[Path, typer.Option(help="JSON lines to write; a partial one is continued.")],
        comparators: Annotated[str, typer.Option(help="Comma-separated names.")] = ALL,
        workers: Annotated[int | None, typer.Option(min=1, help="Worker processes; default: one a CPU.")] = None,
        timeout: Annotated[float, typer.Option(min=0.001, max=86_400, help="Seconds one query may run.")] = 30.0,
        db_id: Annotated[str | None, typer.Option(help="The database of lines that name none.")] = None,
    ) -> None:
        """Compare predicted with gold queries; resumable, bad lines are reported and left out."""
        from verl_sql.database.faults import ExecutorError

        names = [name.strip() for name in comparators.split(",") if name.strip()]
        try:
            summary = score_file(pairs, db_root, out, names, workers=workers, timeout=timeout, db_id=db_id)
        except (ScoreError, ExecutorError) as error:
            typer.echo(f"verl-sql score: {error}", err=True)
            raise typer.Exit(2) from None
        done = f"{summary.scored} scored, {summary.resumed} found scored already, {summary.bad} bad lines left out"
        typer.echo(f"{out}: {done}", err=True)
        if summary.bad and not summary.scored + summary.resumed:
            raise typer.Exit(1)


def score_file(
    pairs: Path,
    db_roots: Sequence[Path],
    out: Path,
    comparators: Iterable[str],
    *,
    workers: int | None = None,
    timeout: float = 30.0,
    db_id: str | None = None,
) -> Summary:
    """Score every line of `pairs` into `out`, going on after the lines that `out` holds already.

    Lines without a db_id take that of the argument, if it is given.

    Raises:
        ScoreError: a comparator, root or file does not exist, or `out` belongs to another run.
    """
    from tqdm import tqdm

    from verl_sql.database.catalog import Catalog, DatabaseNotFound
    from verl_sql.database.comparators import check_comparators

    try:
        names = check_comparators(comparators)
        catalogs = [Catalog(root) for root in db_roots]
        n_lines = _count_lines(pairs)
    except (ValueError, DatabaseNotFound, OSError) as error:
        raise ScoreError(str(error)) from None
    out.parent.mkdir(parents=True, exist_ok=True)
    interval = 0.5 if sys.stderr.isatty() else 10.0
    with tqdm(total=n_lines, unit=" pairs", mininterval=interval) as bar, pairs.open("rb") as source:
        reader = _Reader(catalogs, "test_suite" in names, db_id, lambda text: bar.write(text, file=sys.stderr))
        with out.open("a+b") as sink:
            _lock(sink, out)
            requests = iter(reader.requests(source))
            resumed, pending = _resume(requests, sink, out, names)
            bar.update(resumed)
            scored = _score_rest(pending, requests, sink, names, workers, timeout, bar, reader.report)
        bar.update(n_lines - bar.n)
    return Summary(scored, resumed, reader.bad)


# --- reading ---


class _Reader:
    """Turns input lines into requests; says which lines are bad, and counts them."""

    def __init__(
        self, catalogs: Sequence["Catalog"], with_variants: bool, db_id: str | None, report: Callable[[str], None]
    ) -> None:
        self._catalogs = catalogs
        self._with_variants = with_variants
        self._db_id = db_id
        self.report = report
        self.bad = 0

    def requests(self, lines: Iterable[bytes]) -> Iterator[Request]:
        """The good lines; blank ones are passed over in silence, bad ones are reported by number."""
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                yield self._request(number, line)
            except (ValueError, LookupError, RecursionError) as error:
                self.bad += 1
                self.report(f"line {number}: {error}")

    def _request(self, number: int, line: bytes) -> Request:
        """The request of one line.

        Raises:
            ValueError: the line is no JSON object of the right shape.
            DatabaseNotFound: no root has its database.
        """
        record = json.loads(line)
        if not isinstance(record, dict):
            raise ValueError("not a JSON object")
        if record.get("pair_id") is None:
            raise ValueError("no pair_id")
        if self._db_id is not None:
            record.setdefault("db_id", self._db_id)
        for key in ("db_id", "gold", "pred"):
            if not isinstance(record.get(key), str):
                raise ValueError(f"{key} is missing or not a string (pair_id {record['pair_id']!r})")
        database, variants = self._find(record["db_id"])
        return Request(number, record["pair_id"], database, record["gold"], record["pred"], variants)

    def _find(self, db_id: str) -> tuple[Path, tuple[Path, ...]]:
        """The database and, where they are asked for, its variants, from the first root that has it."""
        reasons = []
        for catalog in self._catalogs:
            try:
                return catalog.path(db_id), catalog.variants(db_id)[1:] if self._with_variants else ()
            except LookupError as error:
                reasons.append(str(error))
        raise LookupError("; ".join(reasons))


def _count_lines(path: Path) -> int:
    """Number of lines of a file."""
    with path.open("rb") as file:
        return sum(1 for _ in file)


# --- scoring ---


def _score_rest(
    pending: Request | None,
    requests: Iterator[Request],
    sink: IO[bytes],
    names: tuple[str, ...],
    workers: int | None,
    timeout: float,
    bar: Any,
    report: Callable[[str], None],
) -> int:
    """Score `pending` and all further requests into `sink`; how many there were."""
    scored, flushed = 0, time.monotonic()
    for request, comparison in _compare(pending, requests, names, workers, timeout):
        if comparison.gold.data_fault:
            report(f"line {request.number}: {comparison.gold.message}")
        sink.write(_output_line(request, comparison, names))
        scored += 1
        bar.update(request.number - bar.n)
        if time.monotonic() - flushed > FLUSH_SECONDS:
            sink.flush()
            flushed = time.monotonic()
    return scored


def _compare(
    pending: Request | None, requests: Iterator[Request], names: tuple[str, ...], workers: int | None, timeout: float
) -> Iterator[tuple[Request, "Comparison"]]:
    """Every request with its comparison, in order."""
    from verl_sql.database.executor import Executor, Pair

    if pending is None:
        return
    waiting: deque[Request] = deque()

    def pairs() -> Iterator[Pair]:
        request: Request | None = pending
        while request is not None:
            waiting.append(request)
            yield Pair(request.database, request.gold, request.pred, request.variants)
            request = next(requests, None)

    with Executor(workers=workers, timeout=timeout) as executor:
        for comparison in executor.compare_many(pairs(), comparators=names):
            yield waiting.popleft(), comparison


def _output_line(request: Request, comparison: "Comparison", names: tuple[str, ...]) -> bytes:
    """The output line of one request."""
    record = {
        "pair_id": request.pair_id,
        "gold_status": comparison.gold.status.value,
        "pred_status": comparison.pred.status.value,
        **official_values(comparison, names),
    }
    return json.dumps(record).encode("ascii") + b"\n"


def official_values(comparison: "Comparison", names: tuple[str, ...]) -> dict[str, float | None]:
    """The values of a comparison, a prediction without any statement taken as the official evaluators take it.

    SQLite 'runs' an empty text or a comment and gives no rows, which equals an empty gold result. For a reward that is
    a hole, so the executor calls it an error; agreement with the recorded verdicts needs the official reading.
    """
    from verl_sql.database.comparators import ResultView, compare_results, value_keys

    values = comparison.values
    if comparison.pred.no_statement and comparison.gold.is_empty:
        empty = ResultView((), [])
        values = compare_results(names, empty, empty, "") | {"test_suite": 1.0}
    return {key: values[key] for key in value_keys(names)}


# --- resuming ---


def _lock(sink: IO[bytes], out: Path) -> None:
    """Keep other runs off the output until it is closed."""
    try:
        fcntl.flock(sink, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise ScoreError(f"{out} is being written by another run") from None


def _resume(
    requests: Iterator[Request], sink: IO[bytes], out: Path, names: tuple[str, ...]
) -> tuple[int, Request | None]:
    """Pass over the requests whose lines `out` holds, cut off a torn last line, and leave `sink` at its end.

    Returns:
        How many were passed over, and the first request that is not scored yet (None if all are).
    """
    sink.seek(0)
    resumed = kept_bytes = 0
    request: Request | None = None
    for request in requests:
        line = sink.readline()
        if not line.endswith(b"\n"):
            break
        _check_line(line, request, out, resumed + 1, names)
        resumed += 1
        kept_bytes += len(line)
        request = None
    if request is None and sink.readline().endswith(b"\n"):
        raise ScoreError(f"{out} holds more lines than there are pairs: it is of another run; name another file")
    sink.seek(kept_bytes)
    os.ftruncate(sink.fileno(), kept_bytes)
    return resumed, request


def _check_line(line: bytes, request: Request, out: Path, number: int, names: tuple[str, ...]) -> None:
    """See that a line of `out` is that of the request.

    Raises:
        ScoreError: it is not.
    """
    from verl_sql.database.comparators import value_keys

    try:
        record = json.loads(line)
    except ValueError:
        record = None
    keys = ["pair_id", "gold_status", "pred_status", *value_keys(names)]
    if not isinstance(record, dict) or list(record) != keys or record["pair_id"] != request.pair_id:
        raise ScoreError(
            f"line {number} of {out} is not the score of pair {request.pair_id!r} by {', '.join(names)}: "
            "the file is of another run; name another file, or delete it"
        )
