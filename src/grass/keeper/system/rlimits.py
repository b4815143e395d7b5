"""Resource limits of a login, set on the keeper so that its jobs inherit them.

The shell that started a daemon may have unusual limits; a login has those of PID 1. A
limit that may not be raised is left as it is: it never stops the keeper.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress

_NAMES = {
    "Max cpu time": resource.RLIMIT_CPU,
    "Max file size": resource.RLIMIT_FSIZE,
    "Max data size": resource.RLIMIT_DATA,
    "Max stack size": resource.RLIMIT_STACK,
    "Max core file size": resource.RLIMIT_CORE,
    "Max resident set": resource.RLIMIT_RSS,
    "Max processes": resource.RLIMIT_NPROC,
    "Max open files": resource.RLIMIT_NOFILE,
    "Max locked memory": resource.RLIMIT_MEMLOCK,
    "Max address space": resource.RLIMIT_AS,
    "Max pending signals": resource.RLIMIT_SIGPENDING,
    "Max msgqueue size": resource.RLIMIT_MSGQUEUE,
    "Max nice priority": resource.RLIMIT_NICE,
    "Max realtime priority": resource.RLIMIT_RTPRIO,
    "Max realtime timeout": resource.RLIMIT_RTTIME,
}
_SOFT = {resource.RLIMIT_NOFILE: 1024, resource.RLIMIT_CORE: 0}

_OOM_SCORE = "/proc/self/oom_score_adj"
_MOST_OOM_SCORE = 1000
_JOBS_OOM_SCORE = 200
"""How much higher the score of a job is than its keeper's."""

# For the keeper itself, which may hold one for every job: more than any machine runs,
# and few enough to close one by one after a fork.
_OWN_FILES = 1 << 16

Pair = tuple[int, int]


def set_login_limits() -> None:
    """Give this process the limits of a login, as far as allowed."""
    try:
        with open("/proc/1/limits", encoding="ascii") as file:
            wanted = parse_limits(file.read())
    except OSError:
        wanted = {}
    for which in {*wanted, *_SOFT}:
        present = resource.getrlimit(which)
        _set(which, wanted.get(which, present), present)


class OpenFiles:
    """How many descriptors the keeper may have, and how many a job."""

    def __init__(self) -> None:
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._of_jobs = (soft, hard)
        self._own = (_larger(soft, _smaller(_OWN_FILES, hard)), hard)

    def raise_own(self) -> None:
        """Set the keeper's limit."""
        resource.setrlimit(resource.RLIMIT_NOFILE, self._own)

    def lower(self) -> None:
        """Set the limit of a job, for this process or the one it starts next."""
        resource.setrlimit(resource.RLIMIT_NOFILE, self._of_jobs)


class OomScore:
    """The score by which the kernel kills jobs before the keeper if memory runs out."""

    def __init__(self) -> None:
        self._file, own = -1, 0
        with suppress(OSError):
            self._file = os.open(_OOM_SCORE, os.O_RDWR | os.O_CLOEXEC)
            own = int(os.read(self._file, 16))
        self._own = b"%d" % own
        self._of_jobs = b"%d" % min(_MOST_OOM_SCORE, own + _JOBS_OOM_SCORE)

    def set_for_job(self) -> None:
        """Set the score of a job, for this process and the one it starts next."""
        with suppress(OSError):
            os.pwrite(self._file, self._of_jobs, 0)

    def set_own(self) -> None:
        """Set the keeper's own score."""
        with suppress(OSError):
            os.pwrite(self._file, self._own, 0)


def parse_limits(text: str) -> dict[int, Pair]:
    """Read the soft and hard limits out of a /proc/PID/limits text."""
    found = {}
    for line in text.splitlines():
        which = _NAMES.get(line[:25].strip())
        words = line[25:].split()
        if which is not None and len(words) >= 2:
            found[which] = (_number(words[0]), _number(words[1]))
    return found


def _number(word: str) -> int:
    return resource.RLIM_INFINITY if word == "unlimited" else int(word)


def _set(which: int, wanted: Pair, present: Pair) -> None:
    soft = _SOFT.get(which, wanted[0])
    for hard in (_larger(wanted[1], present[1]), present[1]):
        try:
            resource.setrlimit(which, (_smaller(soft, hard), hard))
        except (ValueError, OSError):
            continue
        return


def _larger(one: int, other: int) -> int:
    if resource.RLIM_INFINITY in (one, other):
        return resource.RLIM_INFINITY
    return max(one, other)


def _smaller(one: int, other: int) -> int:
    if one == resource.RLIM_INFINITY:
        return other
    return one if other == resource.RLIM_INFINITY else min(one, other)
