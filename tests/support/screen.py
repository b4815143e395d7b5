"""A terminal, as commands see it."""

import fcntl
import os
import pty
import struct
import subprocess
import termios
from collections.abc import Mapping, Sequence


class Screen:
    """A command on a terminal of 80 by 24, read until something shows."""

    def __init__(self, command: Sequence[str], surroundings: Mapping[str, str]) -> None:
        self._end, far_end = pty.openpty()
        size = struct.pack("HHHH", 24, 80, 0, 0)
        fcntl.ioctl(far_end, termios.TIOCSWINSZ, size)
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
        self.seen = ""

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
        os.close(self._end)
        return self.process.wait()
