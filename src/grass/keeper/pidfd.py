"""Signals and exit codes by pidfd, which cannot be of the wrong process.

A pid alone may have been reused since it was recorded; a pid together with its start
time, checked after the pidfd is open, cannot.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct

from grass.keeper.process_table import start_ticks

_INFO = struct.Struct("=QQ11Ii")
_GET_INFO = (3 << 30) | (_INFO.size << 16) | (0xFF << 8) | 11
_INFO_EXIT = 1 << 3


class NotReaped(Exception):
    """The process is over, but its parent has not reaped it yet."""


def open_checked(pid: int, ticks: int) -> int | None:
    """Open the process that started at `ticks`, or return None if it is gone.

    Raises OSError if that is unknown, for example without free descriptors.
    """
    if pid <= 1:
        return None
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return None
    same = False
    try:
        same = start_ticks(pid) == ticks
    finally:
        if not same:
            os.close(descriptor)
    return descriptor if same else None


def send_signals(pid: int, ticks: int, signals: tuple[int, ...]) -> None:
    """Send the signals in order; a process that is gone is not an error."""
    try:
        descriptor = open_checked(pid, ticks)
    except OSError:
        return
    if descriptor is None:
        return
    try:
        for number in signals:
            signal.pidfd_send_signal(descriptor, number)
    except OSError:
        # Gone meanwhile, or of another user: nothing more can be done.
        return
    finally:
        os.close(descriptor)


def exit_status(descriptor: int) -> int | None:
    """Return the wait status of a process that is over.

    None: this kernel does not tell. Raises NotReaped until it is reaped.
    """
    buffer = bytearray(_INFO.size)
    struct.pack_into("=Q", buffer, 0, _INFO_EXIT)
    try:
        fcntl.ioctl(descriptor, _GET_INFO, buffer)
    except OSError:
        return None
    fields = _INFO.unpack(buffer)
    if fields[0] & _INFO_EXIT:
        return int(fields[-1])
    raise NotReaped
