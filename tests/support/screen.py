"""A terminal, as commands see it; the fixture `screens` ends what a test leaves."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence

_OPENED: list["Screen"] = []


class Screen:
    """A command on a terminal of 80 by 24, read until something shows."""

    def __init__(self, command: Sequence[str], surroundings: Mapping[str, str]) -> None:
        self._end, far_end = pty.openpty()
        self.resize(24, 80)
        self._modes = termios.tcgetattr(far_end)
        self.process = subprocess.Popen(
            command,
            env={**surroundings, "TERM": "xterm"},
            stdin=far_end,
            stdout=far_end,
            stderr=far_end,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
        )
        os.close(far_end)
        self._is_open = True
        self.seen = ""
        _OPENED.append(self)

    def resize(self, rows: int, columns: int) -> None:
        """Give the window another size."""
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self._end, termios.TIOCSWINSZ, size)

    def type(self, keys: str) -> None:
        """Type keys; only what shows after them is seen from now on."""
        self.seen = ""
        os.write(self._end, keys.encode())

    @property
    def is_restored(self) -> bool:
        """Tell whether the terminal has the modes that it had before the command."""
        return termios.tcgetattr(self._end) == self._modes

    def close(self) -> None:
        """Close the window."""
        if self._is_open:
            self._is_open = False
            os.close(self._end)

    def leave(self) -> None:
        """Close the window, and end a command that outlives it."""
        self.close()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def until(self, text: str) -> None:
        """Read on until a text has shown."""
        while text not in self.seen:
            self.seen += os.read(self._end, 65536).decode(errors="replace")

    def answer(self, line: str, until: str = "") -> None:
        """Type a line, and read on until a text shows after it."""
        os.write(self._end, f"{line}\n".encode())
        before, self.seen = self.seen, ""
        self.until(until)
        self.seen = before + self.seen

    def press(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._end, keys)

    def interrupt(self) -> int:
        """Press Ctrl-C, and return the exit code."""
        os.write(self._end, b"\x03")
        return self.ended()

    def ended(self) -> int:
        """Read to the end, and return the exit code."""
        while True:
            try:
                piece = os.read(self._end, 65536)
            except OSError:
                break
            if not piece:
                break
            self.seen += piece.decode(errors="replace")
        self.close()
        return self.process.wait()


def leave_all() -> None:
    """Leave every screen of a test, also of one that failed halfway."""
    while _OPENED:
        _OPENED.pop().leave()
