"""The keeper's memory on disk: JSON lines, from which a successor takes over.

A line is whole or not there: a write that fails is cut off again. After a failure the
file is behind the truth, and the next flush writes it anew from a snapshot; until that
works no attempt may start. A keeper begins so, with its predecessor's file. Nothing is
fsynced, as records matter within one boot only.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from grass.keeper.crash import crash_point
from grass.keeper.wire import BrokenLine, decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable

    from grass.keeper.events import Entry

TIDY_BYTES = 1 << 20
COMPACT_BYTES = 64 << 20


class Records:
    """The records file of one keeper."""

    def __init__(self, directory: str, header: Entry) -> None:
        """Name the file; nothing is opened before the first flush."""
        self._path = os.path.join(directory, "records")
        self._header = header
        self._descriptor = -1
        self._size = 0
        self._pending: list[bytes] = []
        self._behind = True
        self._compact_at = COMPACT_BYTES

    def load(self) -> list[Entry]:
        """Return what a predecessor of the same boot left; else nothing."""
        try:
            with open(self._path, "rb") as file:
                lines = file.read().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        entries = list(_readable(lines))
        if not entries or entries[0].get("boot") != self._header["boot"]:
            return []
        return entries[1:]

    def add(self, line: bytes) -> None:
        """Queue a line for the next flush."""
        self._pending.append(line)

    def flush(self, snapshot: Callable[[], list[Entry]], empty: bool) -> None:
        """Write the queued lines; raises OSError when the file is behind after it."""
        data = b"".join(self._pending)
        self._pending.clear()
        if self._behind or self._is_too_large(len(data), empty):
            self.rewrite(snapshot())
        elif data:
            self._append(data)

    def _is_too_large(self, more: int, empty: bool) -> bool:
        limit = TIDY_BYTES if empty else self._compact_at
        return self._size + more > limit

    def _append(self, data: bytes) -> None:
        crash_point("keeper.before-record")
        try:
            self._write(self._descriptor, data)
        except OSError:
            self._behind = True
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)
        crash_point("keeper.after-record")

    def rewrite(self, entries: list[Entry]) -> None:
        """Replace the file by the header and these entries, at once or not at all."""
        data = b"".join(map(encode, [self._header, *entries]))
        self._behind = True
        descriptor = os.open(
            self._path + ".new",
            os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC,
            0o600,
        )
        try:
            self._write(descriptor, data)
            crash_point("keeper.before-rename")
            os.rename(self._path + ".new", self._path)
        except OSError:
            os.close(descriptor)
            # Half of it only takes room that others could use.
            os.unlink(self._path + ".new")
            raise
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = descriptor
        self._size = len(data)
        self._behind = False
        # Under many live attempts a snapshot is large itself: let it double first.
        self._compact_at = max(COMPACT_BYTES, 2 * len(data))

    def _write(self, descriptor: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]


def _readable(lines: list[bytes]) -> list[Entry]:
    entries = []
    for line in lines:
        try:
            entries.append(decode(line))
        except BrokenLine:
            continue
    return entries
