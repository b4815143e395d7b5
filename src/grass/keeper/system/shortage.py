"""What a machine may be short of when a program is to be started.

Such a failure would have met any other job, too: it says nothing about the job.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

_OF_MACHINE = {
    errno.EAGAIN: "no more processes are allowed",
    errno.ENOMEM: "not enough memory",
    errno.EMFILE: "too many open files",
    errno.ENFILE: "too many open files on the machine",
}
_OF_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


class CannotStartNow(Exception):
    """The machine cannot start programs at present; in few words, why."""

    def __init__(self, error: OSError, folder: str | None = None) -> None:
        super().__init__(cause(error))
        self.folder = folder


def is_of_machine(error: OSError) -> bool:
    """Tell whether processes, memory or descriptors are short."""
    return error.errno in _OF_MACHINE


def is_of_disk(error: OSError) -> bool:
    """Tell whether a disk is full or takes no more writes."""
    return error.errno in _OF_DISK


def cause(error: Exception) -> str:
    """Say in few words what went wrong."""
    if not isinstance(error, OSError) or error.errno is None:
        return str(error)
    return _OF_MACHINE.get(error.errno) or os.strerror(error.errno).lower()


def probe_process() -> None:
    """Make a pipe and a process that does nothing; raises OSError if it cannot."""
    ends = os.pipe()
    try:
        if os.fork() == 0:
            os._exit(0)
    finally:
        for end in ends:
            os.close(end)


def probe_folder(folder: str) -> None:
    """Make a file in a folder of output and delete it; raises OSError if it cannot."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, ".probe")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, bytes(4096))
    finally:
        os.close(descriptor)
        os.unlink(path)
    with suppress(OSError):
        os.rmdir(folder)
