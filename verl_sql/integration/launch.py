"""Runs a trainer command and ends it with one sentence when it cannot go on.

verl 0.9.1 waits for ever when a vLLM worker dies: the rollout never returns and nothing is printed. This launcher
copies the command's output to a log, looks for the words with which Ray and vLLM report a dead worker, watches the
vLLM processes themselves, and bounds both silence and the whole run. Whatever the command leaves running afterwards
(Ray's daemons above all) is ended too. Linux only, like verl.

    python -m verl_sql.integration.launch --log FILE [--stall-seconds 600] [--timeout S] -- COMMAND ARGS...

Exit status: the command's own (128 + N for signal N); 70 when a worker died, 75 when nothing new was printed for
too long, 124 when the time was up, 127 when the command does not exist.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import IO, BinaryIO

from verl_sql.integration.processes import Process, adopt_orphans, descendants, end_descendants, reap_orphans

ENDING_SECONDS = 8.0
"""How long a failing driver may take from losing its workers to its own end."""

EXIT_WORKER_DIED, EXIT_STALLED, EXIT_TIMEOUT, EXIT_NOT_FOUND = 70, 75, 124, 127

WATCHED_TITLES = ("VLLM::", "ray::vLLMHttpServer")
"""How vLLM's own processes, and verl's actor around them, start their process titles."""

FATAL = re.compile(
    rb"EngineDeadError|EngineCore encountered a fatal error|engine core exited unexpectedly"
    rb"|(?:Engine core|Worker) proc \S+ died|vLLMHttpServer.{0,120}\bdied\b|ActorDiedError|ActorUnavailableError"
)
"""What Ray 2.60 and vLLM 0.24 to 0.27 print when a worker is lost; a retry never helps after one of these."""

ERROR = re.compile(rb"\w+(?:Error|Exception): .+")
"""The last line of a traceback."""

HEARTBEAT = re.compile(rb"pending: \d+, running: \d+, finished: \d+, failure: \d+")
"""What verl 0.9.1 logs again and again while it waits for rollouts (trainer/ppo/v1/replay_buffer.py)."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """How long the command may tell nothing new, run, and live on after a worker died (all in seconds).

    Attributes:
        grace: time a command gets to end by itself after a worker died; a run that is just finishing needs it too,
            since vLLM's processes end before the driver does.
    """

    stall: float = 600.0
    timeout: float | None = None
    grace: float = 45.0
    poll: float = 0.5


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a command was ended, as exit status and as a sentence."""

    code: int
    sentence: str


class Console:
    """Copies a command's output to a log and to our own output, and remembers when it last told something new.

    Lines are matched against `FATAL` as they pass; a carriage return ends a line too (progress bars).
    """

    def __init__(self, source: IO[bytes], log: BinaryIO, show: re.Pattern[bytes] | None = None) -> None:
        """Begin to copy; with `show`, our own output gets only the lines that match it, the log still everything."""
        self.last_news = time.monotonic()
        self.fatal_line: str | None = None
        self.fatal_at: float | None = None
        self.last_error: str | None = None
        self._source = source
        self._log = log
        self._show = show
        self._rest = b""
        self._heartbeat: bytes | None = None
        self._thread = threading.Thread(target=self._copy, name="console", daemon=True)
        self._thread.start()

    def join(self, seconds: float) -> None:
        """Wait until the output has ended, but no longer than this: a daemon may hold the pipe open."""
        self._thread.join(seconds)

    def _copy(self) -> None:
        while chunk := os.read(self._source.fileno(), 65536):
            self._log.write(chunk)
            self._log.flush()
            if self._show is None:
                self._print(chunk)
            self._scan(chunk)

    def _print(self, text: bytes) -> None:
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()

    def _scan(self, chunk: bytes) -> None:
        *lines, self._rest = re.split(rb"[\r\n]", self._rest + chunk)
        self._rest = self._rest[-4096:]
        for line in lines:
            if self._is_news(line):
                self.last_news = time.monotonic()
            if self._show is not None and (shown := self._show.search(line)):
                self._print(line[shown.start() :] + b"\n")
            if error := ERROR.search(line):
                self.last_error = error.group().decode("utf-8", "replace").strip()[:300]
            if self.fatal_line is None and FATAL.search(line):
                self.fatal_line = line.decode("utf-8", "replace").strip()[:200]
                self.fatal_at = time.monotonic()

    def _is_news(self, line: bytes) -> bool:
        """Whether a line shows that the run goes on: a heartbeat does when its counts have changed."""
        heartbeat = HEARTBEAT.search(line)
        if heartbeat is None:
            return bool(line.strip())
        changed = heartbeat.group() != self._heartbeat
        self._heartbeat = heartbeat.group()
        return changed


class WorkerWatch:
    """Remembers the vLLM processes that were seen below this one, and notices the first that is gone."""

    def __init__(self, titles: Sequence[str] = WATCHED_TITLES) -> None:
        self.lost: Process | None = None
        self.lost_at: float | None = None
        self._titles = tuple(titles)
        self._seen: dict[tuple[int, int], Process] = {}

    def look(self) -> None:
        """Compare the living processes with those seen before; a process keeps its identity when its title changes."""
        living = {process.key: process for process in descendants()}
        for key, process in self._seen.items():
            if self.lost is None and key not in living:
                self.lost, self.lost_at = process, time.monotonic()
        self._seen.update((key, p) for key, p in living.items() if p.title.startswith(self._titles))


def run(command: Sequence[str], log: Path, bounds: Bounds = Bounds(), show: re.Pattern[bytes] | None = None) -> int:
    """Run a command under the bounds and return the exit status, with one sentence on stderr if it was ended.

    Args:
        command: program and arguments.
        log: file that the output is appended to; its folder is created.
        bounds: limits in seconds.
        show: what our own output shows: each line that matches, from the match on; None for everything.

    Returns:
        the command's exit status, or one of the EXIT_ constants.
    """
    adopt_orphans()
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as sink:
        try:
            child = _start(command)
        except OSError as error:
            print(f"verl_sql: cannot start {command[0]}: {error.strerror}", file=sys.stderr)
            return EXIT_NOT_FOUND
        assert child.stdout is not None
        console = Console(child.stdout, sink, show)
        try:
            failure = _watch(child, console, bounds)
        finally:
            end_descendants(spare=[child.pid])
        console.join(2.0)
    return _report(child.wait(), failure, log)


def _start(command: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start the command in a session of its own, one pipe for both its outputs.

    It may write byte code even where the caller's shell forbids it: importing verl takes 17 s of CPU time without and
    7.5 s with, and a run has half a dozen processes that do.
    """
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, env=env)


def _watch(child: "subprocess.Popen[bytes]", console: Console, bounds: Bounds) -> Failure | None:
    """Wait for the child to end; returns why it has to be ended, or why it ended badly, if a worker died."""
    workers = WorkerWatch()
    began = time.monotonic()
    while child.poll() is None:
        workers.look()
        failure = _judge(console, workers, bounds, began, time.monotonic())
        if failure is not None:
            return failure
        reap_orphans(spare=[child.pid])
        time.sleep(bounds.poll)
    return _end(child.returncode, console, workers)


def _end(status: int, console: Console, workers: WorkerWatch) -> Failure | None:
    """Why a command that ended by itself failed; None if it did not.

    Workers end with a driver that fails, too: only one that was lost some time before is to blame.
    """
    if status == 0:
        return None
    if console.fatal_line is not None or (workers.lost_at and time.monotonic() - workers.lost_at > ENDING_SECONDS):
        return _death(console, workers)
    code = 128 - status if status < 0 else status
    why = f": {console.last_error}" if console.last_error else ""
    return Failure(code, f"the command ended with exit status {code}{why}")


def _judge(console: Console, workers: WorkerWatch, bounds: Bounds, began: float, now: float) -> Failure | None:
    """Whether the run is over its bounds at time `now`."""
    deaths = [at for at in (workers.lost_at, console.fatal_at) if at is not None]
    if deaths and now - min(deaths) > bounds.grace:
        return _death(console, workers)
    if bounds.timeout is not None and now - began > bounds.timeout:
        return Failure(EXIT_TIMEOUT, f"the run was not over after {bounds.timeout:g} s and was ended")
    if now - console.last_news > bounds.stall:
        return Failure(EXIT_STALLED, f"the run told nothing new for {bounds.stall:g} s and was ended")
    return None


def _death(console: Console, workers: WorkerWatch) -> Failure | None:
    """The failure that names the worker that died, or the line that reported it; None if none did."""
    if workers.lost is not None:
        name = f"{workers.lost.title.split(' ')[0]} (process {workers.lost.pid})"
        hint = "killed from outside or, often, out of memory"
        return Failure(EXIT_WORKER_DIED, f"the vLLM worker {name} died ({hint}); the run was ended")
    if console.fatal_line is not None:
        return Failure(EXIT_WORKER_DIED, f"a worker died, the run was ended: {console.fatal_line}")
    return None


def _report(status: int, failure: Failure | None, log: Path) -> int:
    """Say what happened, if anything did, and return the exit status of the launcher."""
    code = 128 - status if status < 0 else status
    if failure is None:
        return code
    print(f"verl_sql: {failure.sentence}. Full output: {log}", file=sys.stderr, flush=True)
    return failure.code


def _parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line; everything behind `--` is the command."""
    parser = argparse.ArgumentParser(prog="python -m verl_sql.integration.launch", description=__doc__.split("\n")[0])
    parser.add_argument("--log", type=Path, required=True, help="file the output is appended to")
    parser.add_argument("--stall-seconds", type=float, default=600.0, help="silence after which the run ends")
    parser.add_argument("--timeout", type=float, default=None, help="seconds after which the run ends in any case")
    parser.add_argument("--grace", type=float, default=45.0, help="seconds to end by itself after a worker died")
    parser.add_argument(
        "--show", metavar="REGEX", help="print only lines that match, from the match on; the log has all"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- program and its arguments")
    options = parser.parse_args(argv)
    if options.command[:1] == ["--"]:
        options.command = options.command[1:]
    if not options.command:
        parser.error("no command given: put it behind --")
    return options


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Turn a signal into an exception, so that the process tree below is ended on the way out."""
    raise SystemExit(128 + number)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of `python -m verl_sql.integration.launch`."""
    options = _parse(argv)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _interrupt)
    bounds = Bounds(stall=options.stall_seconds, timeout=options.timeout, grace=options.grace)
    show = re.compile(options.show.encode()) if options.show else None
    return run(options.command, options.log, bounds, show)


if __name__ == "__main__":
    sys.exit(main())
