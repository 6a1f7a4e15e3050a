"""Parts over processes: order, the same bytes, whose exception it is, and nothing left behind."""

import hashlib
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from verl_sql.dataset import build
from verl_sql.dataset.build import Dataset, build_dataset
from verl_sql.dataset.prepare_job import PrepareJob
from verl_sql.dataset.readers.bird import question_file, read_bird
from verl_sql.dataset.settings import Settings
from verl_sql.dataset.spreading.cluster import cluster_hands
from verl_sql.dataset.spreading.job import SpreadError
from verl_sql.dataset.spreading.process import ProcessHand
from verl_sql.dataset.spreading.spread import in_order, spread

SECONDS = re.compile(rb'"seconds": [^,]+')


class Slowing:
    """A hand in this process that takes longer for small numbers."""

    def __init__(self) -> None:
        self.closed = False

    def work(self, part: int) -> int:
        time.sleep(0.02 if part % 3 == 0 else 0)
        if part == 50:
            raise ValueError("fifty")
        return part * 2

    def close(self) -> None:
        self.closed = True


def test_results_come_in_order_and_few_parts_are_read_ahead() -> None:
    hands, read = [Slowing() for _ in range(3)], []
    parts = (read.append(i) or i for i in range(20))
    found = in_order(hands, parts)
    assert next(found) == 0
    assert len(read) <= 2 * len(hands)
    assert list(found) == [2 * i for i in range(1, 20)]
    assert all(hand.closed for hand in hands)


def test_an_exception_ends_it_and_closes_the_hands() -> None:
    hands = [Slowing(), Slowing()]
    with pytest.raises(ValueError, match="fifty"):
        list(in_order(hands, range(40, 90)))
    assert all(hand.closed for hand in hands)
    assert threading.active_count() < 20


def dataset(root: Path) -> Dataset:
    splits = {split: (lambda split=split: read_bird(root, split)) for split in ("train", "dev")}
    return Dataset("bird", "Made.", splits, tuple(question_file(root, s) for s in splits), root)


def digests(folder: Path) -> dict[str, str]:
    """Digests of a build's files; the seconds in `golds.jsonl` are all that may vary."""
    files = {f.name: SECONDS.sub(b"", f.read_bytes()) for f in folder.iterdir() if f.is_file()}
    return {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}


def test_processes_give_the_same_bytes(bird_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "PART_SIZE", 4)
    build_dataset(dataset(bird_root), Settings(), tmp_path / "one", workers=1)
    monkeypatch.setattr(build, "PARTS_WORTH_A_PROCESS", 1)
    build_dataset(dataset(bird_root), Settings(), tmp_path / "two", workers=2)
    assert digests(tmp_path / "one") == digests(tmp_path / "two")


def test_what_goes_wrong_in_a_process_is_raised_here(tmp_path: Path) -> None:
    job = PrepareJob(Settings(template="nosuch"), None, None)
    with pytest.raises(FileNotFoundError, match="no prompt template 'nosuch'"):
        list(in_order([ProcessHand(job, 1)], [[]]))


def test_a_process_that_dies_is_told() -> None:
    hand = ProcessHand(PrepareJob(Settings(), None, None), 1)
    hand.work([])
    hand._process.kill()
    with pytest.raises(SpreadError, match="ended with status -9"):
        hand.work([])
    hand.close()


def test_processes_end_with_a_killed_parent(tmp_path: Path) -> None:
    script = f"""
        import os, signal
        from verl_sql.dataset.prepare_job import PrepareJob
        from verl_sql.dataset.settings import Settings
        from verl_sql.dataset.spreading.process import ProcessHand
        hand = ProcessHand(PrepareJob(Settings(), None, None), 1)
        hand.work([])
        open({str(tmp_path / "pid")!r}, "w").write(str(hand._process.pid))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=False)
    child = Path("/proc") / (tmp_path / "pid").read_text()
    end = time.monotonic() + 10
    while _runs(child) and time.monotonic() < end:
        time.sleep(0.05)
    assert not _runs(child)


def _runs(process: Path) -> bool:
    """Whether a process is there and no mere entry of a dead one."""
    try:
        return (process / "stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_little_work_stays_in_this_process() -> None:
    class Here:
        def open(self, workers: int, hands: int) -> Any:
            import contextlib

            seen.append((workers, hands))
            return contextlib.nullcontext(lambda part: (part, os.getpid()))

    seen: list[tuple[int, int]] = []
    assert list(spread(Here(), range(5), workers=3, worth=3)) == [(i, os.getpid()) for i in range(5)]
    assert seen == [(3, 1)]
    assert list(spread(Here(), [], workers=3)) == []


@pytest.mark.long
def test_a_ray_cluster_gives_the_same_bytes(bird_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = pytest.importorskip("ray")
    monkeypatch.setattr(build, "PART_SIZE", 4)
    build_dataset(dataset(bird_root), Settings(), tmp_path / "one", workers=1)
    context = ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    try:
        address = context.address_info["gcs_address"]
        build_dataset(dataset(bird_root), Settings(), tmp_path / "cluster", ray_address=address)
        assert digests(tmp_path / "one") == digests(tmp_path / "cluster")
        script = Path(__file__).parents[3] / "data_prep/bird.py"
        command = [sys.executable, str(script), f"source={bird_root}", f"ray_address={address}"]
        done = subprocess.run([*command, f"out={tmp_path}/script"], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "script/train.parquet").read_bytes() == (tmp_path / "one/train.parquet").read_bytes()
        with pytest.raises(FileNotFoundError, match="nosuch"):
            list(in_order(cluster_hands(PrepareJob(Settings(template="nosuch"), None, None), address, 1), [[]]))
    finally:
        ray.shutdown()


def test_no_cluster_there() -> None:
    for address in ("127.0.0.1:9", "ray://127.0.0.1:9"):
        with pytest.raises(SpreadError, match=rf"no Ray cluster at {address}: "):
            cluster_hands(PrepareJob(Settings(), None, None), address, 1)
