"""Processes held by descriptor: signals and exit codes that cannot hit the wrong one.

A pid alone may have been given to another process since it was written down; a pid
together with its start time, checked after the descriptor is open, cannot.
"""

from __future__ import annotations

import fcntl
import os
import signal
import struct

from grass.keeper.system.process_table import start_ticks

_INFO = struct.Struct("=QQ11Ii")
_GET_INFO = (3 << 30) | (_INFO.size << 16) | (0xFF << 8) | 11
_INFO_EXIT = 1 << 3


class NotReaped(Exception):
    """The process is over, but its parent has not collected it yet."""


def open_checked(pid: int, ticks: int) -> int | None:
    """Open the process that started at `ticks`, or return None if it is gone.

    Raises OSError when it cannot be told, as when there are no descriptors left.
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
    """Send the signals in order; a process that is gone is no error."""
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
        # Gone meanwhile, or of another user: nothing more can be done from here.
        return
    finally:
        os.close(descriptor)


def exit_status(descriptor: int) -> int | None:
    """Ask the kernel for the wait status of a process that is over.

    None means this kernel does not tell. Raises NotReaped while it is too early.
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
