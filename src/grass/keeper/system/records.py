"""The keeper's records on disk: JSON lines, from which a successor takes over.

A line is complete or missing: a write that fails is truncated. After a failure the file
is incomplete, and the next flush rewrites it from a snapshot; until that works no
attempt may start. A keeper begins in this state, with its predecessor's file.

Within one boot nothing needs a sync. Exits must survive a power cut, so they are synced
if they are kept for longer than a moment: by a forked child, as a disk may hang. A file
that replaces one with synced exits is synced before.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from grass.keeper.codec import BadMessage, BrokenLine, decode_entry, encode
from grass.keeper.crash_points import crash_point
from grass.keeper.protocol import ExitEntry, KeeperEntry

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from grass.keeper.protocol import Entry

TIDY_BYTES = 1 << 20
COMPACT_BYTES = 64 << 20


class Records:
    """The records file of one keeper."""

    def __init__(self, directory: str, header: KeeperEntry) -> None:
        self._path = os.path.join(directory, "records")
        self._header = header
        self._descriptor = -1
        self._size = 0
        self._pending: list[bytes] = []
        self._incomplete = True
        self._tail = b""
        """What was appended last."""
        self._compact_at = COMPACT_BYTES
        self._was_synced = False

    def load(self) -> tuple[list[Entry], bool]:
        """Return an earlier keeper's records, and whether they are of another boot."""
        try:
            with open(self._path, "rb") as file:
                lines = file.read().split(b"\n")[:-1]
        except FileNotFoundError:
            return [], False
        entries = _readable(lines)
        self._was_synced = _has_exits(entries)
        first = entries[0] if entries else None
        same_boot = isinstance(first, KeeperEntry) and first.boot == self._header.boot
        return entries[1:], not same_boot

    def add(self, line: bytes) -> None:
        """Queue a line for the next flush."""
        self._pending.append(line)

    def take_back(self, lines: bytes, note: bytes) -> None:
        """Truncate lines that are not valid any more, or add a note if not possible.

        Truncating needs no space, so it works on a full disk, too.
        """
        if lines and not self._pending and self._tail.endswith(lines):
            self._tail = b""
            self._size -= len(lines)
            with suppress(OSError):
                os.ftruncate(self._descriptor, self._size)
                return
            self._incomplete = True
        self.add(note)

    def flush(self, snapshot: Callable[[], list[Entry]], empty: bool) -> None:
        """Write the queued lines; raises OSError if the file is incomplete after it."""
        data = b"".join(self._pending)
        self._pending.clear()
        if self._incomplete or self._is_too_large(len(data), empty):
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
            self._incomplete = True
            os.ftruncate(self._descriptor, self._size)
            raise
        self._size += len(data)
        self._tail = data
        crash_point("keeper.after-record")

    def rewrite(self, entries: list[Entry]) -> None:
        """Replace the file by the header and these entries, atomically."""
        data = b"".join(map(encode, [self._header, *entries]))
        self._incomplete = True
        descriptor = os.open(
            self._path + ".new",
            os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC,
            0o600,
        )
        try:
            self._write(descriptor, data)
            if self._was_synced and _has_exits(entries):
                os.fsync(descriptor)
            else:
                self._was_synced = False
            crash_point("keeper.before-rename")
            os.rename(self._path + ".new", self._path)
        except OSError:
            os.close(descriptor)
            # An incomplete copy only uses space.
            os.unlink(self._path + ".new")
            raise
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor = descriptor
        self._size = len(data)
        self._tail = b""
        self._incomplete = False
        # With many live attempts a snapshot is large itself: let it double first.
        self._compact_at = max(COMPACT_BYTES, 2 * len(data))

    def distrust(self) -> None:
        """Have the next flush rewrite the file."""
        self._incomplete = True

    def begin_sync(self) -> int:
        """Fork a child that syncs the file and its folder; return the child's pid.

        Its exit status tells whether that worked.
        """
        # From now on: the file may be replaced before the child has finished.
        self._was_synced = True
        pid = os.fork()
        if pid == 0:
            _sync(self._descriptor, os.path.dirname(self._path))
        return pid

    def _write(self, descriptor: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]


def _sync(descriptor: int, folder: str) -> NoReturn:
    """Sync a file and the folder that names it, in a child of the keeper."""
    try:
        # Above all the lock: a child that hangs must not hold it after the keeper died.
        os.dup2(descriptor, 0)
        os.closerange(1, os.sysconf("SC_OPEN_MAX"))
        os.fdatasync(0)
        os.fsync(os.open(folder, os.O_RDONLY | os.O_DIRECTORY))
    except BaseException:  # noqa: BLE001 - the exit status tells
        os._exit(1)
    os._exit(0)


def _has_exits(entries: list[Entry]) -> bool:
    return any(isinstance(entry, ExitEntry) for entry in entries)


def _readable(lines: list[bytes]) -> list[Entry]:
    """Decode the lines; those that cannot be understood are left out."""
    entries = []
    for line in lines:
        try:
            entry = decode_entry(line)
        except (BrokenLine, BadMessage):
            continue
        if entry is not None:
            entries.append(entry)
    return entries
