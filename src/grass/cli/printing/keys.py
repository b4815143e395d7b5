"""Keys that are pressed while a view is drawn, read by a thread.

The terminal gives keys at once and without showing them, for as long as a block lasts;
Ctrl-C and Ctrl-Z stay what they are. Where stdin is no terminal there are no keys.
"""

from __future__ import annotations

import os
import threading

from grass.client.threads import CtrlCForMain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self

_STDIN = 0
_LONGEST = 8
_KEYS = {
    b"q": "quit",
    b"Q": "quit",
    b"k": "up",
    b"j": "down",
    b"\x1b[A": "up",
    b"\x1b[B": "down",
    b"\x1bOA": "up",
    b"\x1bOB": "down",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    b"b": "page up",
    b" ": "page down",
    b"g": "home",
    b"G": "end",
    b"\x1b[H": "home",
    b"\x1b[F": "end",
    b"\x1b[1~": "home",
    b"\x1b[4~": "end",
    b"\x1bOH": "home",
    b"\x1bOF": "end",
}


class Keyboard:
    """The keys of the terminal that stdin is."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` is called by another thread after each key."""
        self._wake = wake
        self._taken: list[str] = []
        self._before: list[Any] | None = None

    def __enter__(self) -> Self:
        """Begin to read keys."""
        if os.isatty(_STDIN):
            self.open()
            with CtrlCForMain():
                threading.Thread(target=self._read, daemon=True).start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Give the terminal its own ways back."""
        self.close()

    def open(self) -> None:
        """Have keys at once and unseen."""
        import termios

        if os.isatty(_STDIN):
            self._before = termios.tcgetattr(_STDIN)
            ways = termios.tcgetattr(_STDIN)
            ways[3] &= ~(termios.ICANON | termios.ECHO)
            termios.tcsetattr(_STDIN, termios.TCSANOW, ways)

    def close(self) -> None:
        """Let the terminal be as it was."""
        import termios

        if self._before is not None:
            termios.tcsetattr(_STDIN, termios.TCSANOW, self._before)
            self._before = None

    def taken(self) -> Iterator[str]:
        """Take the keys that were pressed since the last call."""
        while self._taken:
            yield self._taken.pop(0)

    def _read(self) -> None:
        unread = b""
        while piece := _next():
            unread += piece
            *found, unread = _split(unread)
            keys = [_KEYS[key] for key in found]
            self._taken += keys
            self._wake()
            if "quit" in keys:
                return


def _next() -> bytes:
    # One at a time: what is typed behind `q` is for the shell.
    try:
        return os.read(_STDIN, 1)
    except OSError:
        return b""


def _split(text: bytes) -> list[bytes]:
    """Return the known keys at the start, and what may be the start of one more."""
    found = []
    while text:
        key = next((text[:n] for n in range(1, _LONGEST) if text[:n] in _KEYS), None)
        if key is not None:
            found.append(key)
            text = text[len(key) :]
        elif any(known.startswith(text) for known in _KEYS):
            break
        else:
            text = text[1:]
    return [*found, text]
