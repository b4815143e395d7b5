"""Talking with jobs through named pipes, so that no test has to guess at time."""

import os
import select
import time
from pathlib import Path

from tests.support.patience import PATIENCE_S


class Fifo:
    """A named pipe that this test keeps open at both ends.

    Kept open, neither side ever blocks on opening it and nothing written gets lost:
    a job that reads waits for `tell`, and `hear` waits for a job that writes.
    """

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._end = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        self._unread = b""

    def __str__(self) -> str:
        return str(self.path)

    def tell(self, text: str = "go", times: int = 1) -> None:
        os.write(self._end, f"{text}\n".encode() * times)

    def hear(self) -> str:
        """Return the next line that a job has written."""
        deadline = time.monotonic() + PATIENCE_S
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            assert select.select([self._end], [], [], max(0, left))[0], "nothing came"
            self._unread += os.read(self._end, 65536)
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def close(self) -> None:
        os.close(self._end)
