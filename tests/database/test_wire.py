"""Messages and the board between parent and worker."""

import os
from types import SimpleNamespace

import pytest

from verl_sql.database.entries import Entry, OneSink
from verl_sql.database.limits import Limits
from verl_sql.database.results import Memory, Result, fitting, rows_bytes
from verl_sql.database.slot import Slot
from verl_sql.database.wire import GOLD, IDLE, NO_LIMIT, Board, Inbox, pack, read_message

VALUES = [(1, 2.5, None, "é\udcff\x00", b"\xff\x00", 1 << 70, ("x",) * 3), [], "", {"a": 1.0}]


def test_values_cross_unchanged() -> None:
    inbox = Inbox()
    data = b"".join(map(pack, VALUES))
    for size in (1, 7, len(data)):
        received = [m for start in range(0, len(data), size) for m in inbox.feed(data[start : start + size])]
        assert received == VALUES


def test_blocking_reader_and_end() -> None:
    read, write = os.pipe()
    os.write(write, pack("whole") + pack("cut")[:-1])
    os.close(write)
    assert read_message(read) == "whole"
    with pytest.raises(EOFError):
        read_message(read)
    os.close(read)


def test_board() -> None:
    fd = os.memfd_create("board")
    os.ftruncate(fd, 4096)
    parent, worker = Board(fd), Board(fd)
    os.close(fd)
    parent.clear()
    assert (worker.now(), worker.limit()) == ((-1, IDLE, 0.0), NO_LIMIT)
    worker.enter(3, GOLD, 12.5)
    parent.stop_before(7)
    assert (parent.now(), worker.limit()) == ((3, GOLD, 12.5), 7)
    parent.close()
    worker.close()


class Interrupted(Board):
    """A board whose writer is interrupted right before it sets the deadline."""

    def enter(self, index: int, side: int, deadline: float) -> None:
        """Write everything but the deadline."""
        super().enter(index, side, 0.0)


def test_a_half_written_board_is_never_overdue() -> None:
    fd = os.memfd_create("board")
    os.ftruncate(fd, 4096)
    worker, slot = Interrupted(fd), Slot(Limits())
    slot.flight = [Entry((0, "a", "SELECT 1", 5.0, 0, False, ()), ("a", "SELECT 1"), OneSink())]
    slot.worker = SimpleNamespace(board=Board(fd))
    os.close(fd)
    worker.enter(0, GOLD, 5.0)
    assert not slot.overdue(1e12)
    Board.enter(worker, 0, GOLD, 5.0)
    assert slot.overdue(6.0)
    assert not slot.overdue(5.2)


def result_of(size: int) -> Result:
    """A result that says it holds so many bytes."""
    result = Result("ok")
    result.held_bytes = size
    return result


def test_memory_lets_the_oldest_go() -> None:
    memory = Memory(1_000)
    for name in "abc":
        memory.put((1, name), result_of(300))
    assert memory.get((1, "a"), 1.0) is not None
    memory.put((2, "d"), result_of(300))
    assert [memory.get(key, 1.0) is not None for key in [(1, "a"), (1, "b"), (1, "c"), (2, "d")]] == [
        True,
        False,
        True,
        True,
    ]
    memory.put((2, "huge"), result_of(900))
    assert memory.get((2, "huge"), 1.0) is None
    memory.drop_database(1)
    assert memory.held == 301
    memory.clear()
    assert memory.held == 0


def test_memory_keeps_a_timeout_for_shorter_ones_only() -> None:
    memory = Memory(10_000)
    memory.put((1, "a"), Result("timeout", timeout=2.0))
    assert memory.get((1, "a"), 1.0) is not None
    assert memory.get((1, "a"), 2.0) is not None
    assert memory.get((1, "a"), 3.0) is None


def test_rows_are_measured_with_their_cells() -> None:
    rows = [("x" * 1000, 1), ("y" * 1000, None)]
    assert 2000 < rows_bytes(rows) < 2600
    assert rows_bytes([]) == 0
    assert fitting(rows, 1500) == rows[:1]
    assert fitting(rows, 5000) == rows
    assert fitting(rows, 10) == []
