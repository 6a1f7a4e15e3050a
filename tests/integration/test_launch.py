"""The launcher against real child processes: each way in which a training run ends."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from verl_sql.integration import launch
from verl_sql.integration.processes import read_process

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the launcher needs /proc")

HEARTBEAT = "(TaskRunner pid=7) INFO: pending: 0, running: 4, finished: 0, failure: 0"


def run_launcher(tmp_path: Path, script: str, *options: str) -> tuple["subprocess.CompletedProcess[str]", Path, float]:
    """Launch `bash -c script` in a process of its own; gives what it printed, its log and the seconds it took."""
    log = tmp_path / "logs" / "console.log"
    command = [sys.executable, "-m", "verl_sql.integration.launch", "--log", str(log), *options]
    began = time.monotonic()
    done = subprocess.run([*command, "--", "bash", "-c", script], capture_output=True, text=True, timeout=120)
    return done, log, time.monotonic() - began


def test_success_passes_output_and_status_on(tmp_path: Path) -> None:
    done, log, _ = run_launcher(tmp_path, "echo one; echo two >&2; printf 'no newline'")
    assert done.returncode == 0
    assert done.stdout == "one\ntwo\nno newline"
    assert log.read_text() == done.stdout
    assert done.stderr == ""


def test_command_may_write_byte_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    done, _, _ = run_launcher(tmp_path, "echo ${PYTHONDONTWRITEBYTECODE:-unset}")
    assert done.stdout == "unset\n"


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -9 $$", 137)])
def test_failure_keeps_the_exit_status(tmp_path: Path, script: str, code: int) -> None:
    done, log, _ = run_launcher(tmp_path, script)
    assert done.returncode == code
    assert done.stderr == f"verl_sql: the command ended with exit status {code}. Full output: {log}\n"


def test_killed_worker_is_named(tmp_path: Path) -> None:
    script = "bash -c 'exec -a VLLM::EngineCore sleep 50' & worker=$!; sleep 1.5; kill -9 $worker; sleep 50"
    done, _, seconds = run_launcher(tmp_path, script, "--grace", "0.5")
    assert done.returncode == launch.EXIT_WORKER_DIED
    assert "the vLLM worker VLLM::EngineCore (process" in done.stderr
    assert seconds < 45


def test_killed_worker_is_named_after_it_changed_its_title(tmp_path: Path) -> None:
    changer = "bash -c 'exec -a VLLM::EngineCore bash -c \"sleep 1.5; exec -a renamed sleep 1.2; true\"'"
    done, _, _ = run_launcher(tmp_path, f"{changer} & sleep 50", "--grace", "0.5")
    assert done.returncode == launch.EXIT_WORKER_DIED
    assert "VLLM::EngineCore" in done.stderr


def test_worker_that_ends_just_before_a_good_run_is_no_failure(tmp_path: Path) -> None:
    script = "bash -c 'exec -a VLLM::EngineCore sleep 1.5'; sleep 1; echo done"
    done, _, _ = run_launcher(tmp_path, script, "--grace", "30")
    assert (done.returncode, done.stdout) == (0, "done\n")


@pytest.mark.parametrize(
    "line",
    [
        "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue.",
        "(vLLMHttpServer pid=5) MPClient: engine core exited unexpectedly; starting cleanup",
        "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.",
    ],
)
def test_reported_death_ends_a_hanging_run(tmp_path: Path, line: str) -> None:
    done, _, seconds = run_launcher(tmp_path, f"echo '{line}'; sleep 50", "--grace", "0.5")
    assert done.returncode == launch.EXIT_WORKER_DIED
    assert line in done.stderr
    assert seconds < 45


def test_silence_ends_the_run_whatever_the_heartbeat_says(tmp_path: Path) -> None:
    script = f"echo start; while true; do echo '{HEARTBEAT}'; sleep 0.3; done"
    done, _, _ = run_launcher(tmp_path, script, "--stall-seconds", "1")
    assert done.returncode == launch.EXIT_STALLED
    assert "told nothing new for 1 s" in done.stderr


def test_a_talking_run_is_not_stalled(tmp_path: Path) -> None:
    script = f"for i in 1 2 3 5 6 7; do echo '{HEARTBEAT}' | sed s/4/$i/; sleep 0.9; done"
    done, _, _ = run_launcher(tmp_path, script, "--stall-seconds", "4")
    assert done.returncode == 0


def test_timeout(tmp_path: Path) -> None:
    done, _, _ = run_launcher(tmp_path, "while true; do date +%N; sleep 0.2; done", "--timeout", "1")
    assert done.returncode == launch.EXIT_TIMEOUT
    assert "not over after 1 s" in done.stderr


def test_daemons_in_sessions_of_their_own_are_ended(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    stubborn = 'trap "" TERM; while true; do sleep 1; done'
    script = f"setsid bash -c '{stubborn}' & echo $! >> {pids}; (setsid sleep 50 & echo $! >> {pids}); sleep 1; exit 0"
    done, _, _ = run_launcher(tmp_path, script)
    assert done.returncode == 0
    left = [int(pid) for pid in pids.read_text().split()]
    assert len(left) == 2
    assert [read_process(pid) for pid in left] == [None, None]


def test_terminating_the_launcher_ends_the_tree(tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    command = [sys.executable, "-m", "verl_sql.integration.launch", "--log", str(tmp_path / "log"), "--"]
    launcher = subprocess.Popen([*command, "bash", "-c", f"echo $$ > {pid_file}; exec sleep 50"])
    deadline = time.monotonic() + 20
    while not (pid_file.exists() and pid_file.read_text()) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(0.5)
    launcher.terminate()
    assert launcher.wait(timeout=30) == 143
    assert read_process(int(pid_file.read_text())) is None


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (["no-such-program-here"], 127, "verl_sql: cannot start no-such-program-here: No such file or directory"),
        ([], 2, "no command given: put it behind --"),
    ],
)
def test_command_that_cannot_start(tmp_path: Path, command: list[str], code: int, message: str) -> None:
    options = ["--log", str(tmp_path / "log"), "--"]
    program = [sys.executable, "-m", "verl_sql.integration.launch", *options, *command]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert done.returncode == code
    assert message in done.stderr


def test_read_process_of_this_one() -> None:
    process = read_process(os.getpid())
    assert process is not None
    assert process.parent == os.getppid()
    assert "pytest" in process.title


def test_show_prints_matching_lines_from_the_match_on(tmp_path: Path) -> None:
    script = r"printf '(Runner pid=1) step 1 of 2: fine\nnoise\rEpoch 1: 50\rEpoch 1: 100\n'"
    done, log, _ = run_launcher(tmp_path, script, "--show", r"step \d+ of .*|Epoch \d+: \d*00")
    assert done.stdout == "step 1 of 2: fine\nEpoch 1: 100\n"
    assert "noise" in log.read_text()


def test_a_failing_driver_is_blamed_not_the_workers_it_takes_along(tmp_path: Path) -> None:
    script = (
        "bash -c 'exec -a VLLM::EngineCore sleep 50' & sleep 1.2; "
        "echo 'Traceback (most recent call last):'; echo 'KeyError: uid'; kill $!; wait $!; sleep 1; exit 1"
    )
    done, log, _ = run_launcher(tmp_path, script)
    assert done.returncode == 1
    assert done.stderr == f"verl_sql: the command ended with exit status 1: KeyError: uid. Full output: {log}\n"
