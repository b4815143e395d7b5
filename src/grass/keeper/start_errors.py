"""Why a program could not be started: because of the job, or because of the machine.

A machine that is short of processes, memory or descriptors could not have started any
other job either.
"""

from __future__ import annotations

import errno
import os

_OF_MACHINE = {
    errno.EAGAIN: "no more processes are allowed",
    errno.ENOMEM: "not enough memory",
    errno.EMFILE: "too many open files",
    errno.ENFILE: "too many open files on the machine",
}
_OF_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


class CannotStart(Exception):
    """The job cannot be started; one sentence says why."""


class MissingHere(CannotStart):
    """A file that the job names cannot be used here; another machine may have it."""

    def __init__(self, reason: str, path: str) -> None:
        super().__init__(reason)
        self.path = path.encode("utf-8", "backslashreplace").decode()
        """As the job names it."""


class CannotStartNow(Exception):
    """The machine cannot start programs at present; a few words say why."""

    def __init__(self, error: OSError, folder: str | None = None) -> None:
        super().__init__(cause(error))
        self.folder = folder


def is_of_machine(error: OSError) -> bool:
    """Tell whether processes, memory or descriptors are short."""
    return error.errno in _OF_MACHINE


def is_of_disk(error: OSError) -> bool:
    """Tell whether a disk is full or cannot be written."""
    return error.errno in _OF_DISK


def cause(error: Exception) -> str:
    """Return in a few words what went wrong."""
    if not isinstance(error, OSError) or error.errno is None:
        return str(error)
    return _OF_MACHINE.get(error.errno) or os.strerror(error.errno).lower()
