"""What a job writes, read in a thread of its own until it is closed.

After an interruption it is read anew from the last lines on: `take` then tells that
what was taken before is to be forgotten.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from grass.errors import GrassError
from grass.tui.reader import AWAY, Connect, Reader, Thread, why_lost

TAIL = 2_000
"""Lines that are read of what was written before."""
AGAIN_S = 1.0


class Written(NamedTuple):
    """What has come since the last look."""

    data: bytes
    is_anew: bool
    """Whether it begins anew."""
    note: str
    """Why no more comes, or comes now; empty: more may come."""
    is_over: bool


class OutputFollower:
    """The output of one job, as it is written."""

    def __init__(self, connect: Connect, job: int, tail: int = TAIL) -> None:
        self.job = job
        self._tail = tail
        self._lock = threading.Condition()
        self._pieces: list[bytes] = []
        self._is_anew = True
        self._note = ""
        self._is_over = False
        self._is_closed = False
        self._thread = Thread(connect, self._follow)

    def close(self) -> None:
        """Read no more; the thread ends by itself."""
        with self._lock:
            self._is_closed = True
            self._lock.notify_all()
        self._thread.break_off()

    def join(self) -> None:
        """Wait for the thread's end."""
        self.close()
        self._thread.join()

    def take(self) -> Written:
        """Return what was written since the last call."""
        with self._lock:
            data, self._pieces = b"".join(self._pieces), []
            anew, self._is_anew = self._is_anew, False
            return Written(data, anew, self._note, self._is_over)

    def _follow(self, reader: Reader) -> None:
        while not self._is_closed and not self._is_over:
            self._read_to_end(reader)

    def _read_to_end(self, reader: Reader) -> None:
        try:
            for piece in reader.output(self.job, follow=True, tail=self._tail):
                self._add(piece)
        except AWAY as error:
            self._interrupted(why_lost(error))
            reader.close()
        except GrassError as error:
            self._end(error.message)
        else:
            self._end("")

    def _add(self, piece: bytes) -> None:
        with self._lock:
            self._note = ""
            self._pieces.append(piece)

    def _interrupted(self, why: str) -> None:
        """Begin anew, a moment later."""
        with self._lock:
            self._note = why
            self._lock.wait_for(lambda: self._is_closed, AGAIN_S)
            self._pieces, self._is_anew = [], True

    def _end(self, note: str) -> None:
        with self._lock:
            self._note, self._is_over = note, True
