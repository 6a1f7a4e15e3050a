"""What parent and worker share: length-prefixed marshal messages over pipes, and a board in shared memory.

marshal carries exactly the values SQLite gives (int, float, str with lone surrogates, bytes, None) and executes
nothing when read. Both ends are the same interpreter.
"""

import marshal
import mmap
import os
import struct
from typing import Any

_LENGTH = struct.Struct("<Q")
_INDEX, _SIDE, _DEADLINE, _LIMIT = 0, 1, 2, 8
"""Fields of the board, as numbers of 8-byte words; the parent writes the last, the worker the others."""

BOARD_BYTES = 4096

IDLE, GOLD, PRED, COMPARING = -1, 0, 1, 2
"""What a worker is at: nothing, the gold query, the predicted (or only) query, comparing results."""

NO_LIMIT = 1 << 62


def pack(message: Any) -> bytes:
    """One message as bytes, its length in front."""
    body = marshal.dumps(message)
    return _LENGTH.pack(len(body)) + body


def read_message(fd: int) -> Any:
    """The next message of a blocking pipe.

    Raises:
        EOFError: the other end is gone.
    """
    return marshal.loads(_read_exactly(fd, _LENGTH.unpack(_read_exactly(fd, _LENGTH.size))[0]))


def _read_exactly(fd: int, size: int) -> bytes:
    """Exactly `size` bytes of a blocking pipe."""
    chunks = []
    while size:
        chunk = os.read(fd, min(size, 1 << 20))
        if not chunk:
            raise EOFError("the other end of the pipe is gone")
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def write_all(fd: int, data: bytes) -> None:
    """Write everything to a blocking pipe."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


class Inbox:
    """Whole messages out of the pieces that a non-blocking pipe gives."""

    def __init__(self) -> None:
        """Empty."""
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[Any]:
        """Add what was read; the messages that are now whole."""
        buffer = self._buffer
        buffer += data
        messages = []
        while len(buffer) >= _LENGTH.size:
            end = _LENGTH.size + _LENGTH.unpack_from(buffer)[0]
            if len(buffer) < end:
                break
            messages.append(marshal.loads(memoryview(buffer)[_LENGTH.size : end]))
            del buffer[:end]
        return messages


class Board:
    """A page of shared memory: the worker says what it is at, the parent says where to stop.

    The parent can read it after the worker is dead, so it knows whose query killed it. It may also read in the middle
    of a write, even one that the system has interrupted for long: each field is one aligned machine word, and the
    deadline is cleared before the others change and set after them. A deadline of 0 means: nothing can be overdue.
    """

    def __init__(self, fd: int) -> None:
        """Map the page of an open file descriptor."""
        self._page = mmap.mmap(fd, BOARD_BYTES)
        self._whole = memoryview(self._page)
        self._words = self._whole.cast("q")
        self._times = self._whole.cast("d")

    def clear(self) -> None:
        """As before a message: idle, no limit."""
        self.leave()
        self.stop_before(NO_LIMIT)

    def enter(self, index: int, side: int, deadline: float) -> None:
        """The worker starts on a side of item `index` and should be done by `deadline` (time.monotonic seconds)."""
        self._times[_DEADLINE] = 0.0
        self._words[_INDEX] = index
        self._words[_SIDE] = side
        self._times[_DEADLINE] = deadline

    def leave(self) -> None:
        """The worker is at nothing."""
        self.enter(-1, IDLE, 0.0)

    def now(self) -> tuple[int, int, float]:
        """Item index, side and deadline of what the worker is at; deadline 0 while that is changing."""
        deadline = self._times[_DEADLINE]
        index, side = self._words[_INDEX], self._words[_SIDE]
        return index, side, deadline if deadline == self._times[_DEADLINE] else 0.0

    def stop_before(self, index: int) -> None:
        """The parent takes items from `index` on back; the worker shall not start them."""
        self._words[_LIMIT] = index

    def limit(self) -> int:
        """The first item that the worker shall not start."""
        return self._words[_LIMIT]

    def close(self) -> None:
        """Unmap the page."""
        for view in (self._words, self._times, self._whole):
            view.release()
        self._page.close()
