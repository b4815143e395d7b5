"""A cgroup of its own for each job that runs long enough, if one can be created.

Nothing here is needed for correctness: without cgroups the processes of a job are found
by session, descent and marker. With one, a process without any of these is still found
and killed. Controllers are enabled only for the first job that is to be limited; until
then limits and accounting stay as they are.

Each keeper has one folder of cgroups. The next keeper removes the empty cgroups that a
killed keeper left.
"""

from __future__ import annotations

import os
from contextlib import suppress

from grass.keeper.mounts import find_cgroup2
from grass.keeper.process_table import CANNOT_LOOK, cgroup_of, read_stat

_PREFIX = "grass-"
_OWN = "keeper"
"""The cgroup of the keeper itself, where controllers are enabled."""
_PASSED_ON = "cgroup.subtree_control"
_CONTROLLERS = ("memory", "cpu")
_PERIOD_US = 100_000


class Cgroups:
    """Creates and removes the cgroups of one keeper's jobs."""

    def __init__(self, mountinfo_text: str, pid: int) -> None:
        mount = find_cgroup2(mountinfo_text)
        own = cgroup_of(pid)
        self._home: str | None = None
        if mount is not None and own is not None:
            beside = os.path.join(mount, own.lstrip("/"))
            self._home = os.path.join(beside, f"{_PREFIX}{pid}")
            _remove_old(beside)
        self._pid = pid
        self._count = 0
        self._enabled = False
        """Whether controllers were enabled for jobs, as far as that is possible."""
        self._not_removed: list[str] = []

    def make(self) -> str | None:
        """Create an empty cgroup and return its path; None if that is not allowed."""
        if self._home is None:
            return None
        self._count += 1
        path = os.path.join(self._home, str(self._count))
        try:
            os.makedirs(self._home, exist_ok=True)
            os.mkdir(path)
        except FileExistsError:
            # An earlier keeper with this pid left it, maybe with processes in it.
            return self.make()
        except OSError:
            # It will not be allowed the next time either.
            self._home = None
            return None
        return path

    def let_out(self, pid: int) -> None:
        """Move a process to the keeper's own cgroup."""
        if self._home is not None:
            beside, own = os.path.dirname(self._home), os.path.join(self._home, _OWN)
            enter(own if os.path.isdir(own) else beside, pid)

    def controllers(self) -> list[str]:
        """Return the controllers that could limit jobs here.

        A cgroup with processes cannot pass controllers on, but for the root; so there
        must be none beside the keeper, which then moves into one of its own.
        """
        if self._home is None:
            return []
        beside = os.path.dirname(self._home)
        passed_on = os.path.join(beside, _PASSED_ON)
        if not os.access(passed_on, os.W_OK):
            return []
        enabled = _words(passed_on)
        if _is_root(beside) or set(pids(beside)) <= {self._pid}:
            enabled |= _words(os.path.join(beside, "cgroup.controllers"))
        return [name for name in _CONTROLLERS if name in enabled]

    def limit(self, path: str, memory: int | None, cores: float | None) -> None:
        """Limit what the processes of a cgroup use, as far as that is possible."""
        if not self._enabled:
            self._enabled = True
            self._enable()
        present = _words(os.path.join(path, "cgroup.controllers"))
        if memory is not None and "memory" in present:
            _write(os.path.join(path, "memory.max"), b"%d" % memory)
            # Otherwise what is above it would only be swapped out.
            _write(os.path.join(path, "memory.swap.max"), b"0")
        if cores is not None and "cpu" in present:
            quota = b"%d %d" % (round(cores * _PERIOD_US), _PERIOD_US)
            _write(os.path.join(path, "cpu.max"), quota)

    def _enable(self) -> None:
        """Enable the controllers for the cgroups of jobs."""
        wanted = self.controllers()
        if self._home is None or not wanted:
            return
        beside = os.path.dirname(self._home)
        if not _is_root(beside) and self._pid in pids(beside):
            own = os.path.join(self._home, _OWN)
            with suppress(OSError):
                os.mkdir(own)
            enter(own, self._pid)
        for folder in (beside, self._home):
            for name in wanted:
                _write(os.path.join(folder, _PASSED_ON), b"+" + name.encode())

    def remove(self, path: str) -> None:
        """Remove a cgroup; one that is not empty is tried again with the next."""
        self._not_removed.append(path)
        self._not_removed = [each for each in self._not_removed if not _removed(each)]
        parent = os.path.dirname(path)
        if parent != self._home:
            _removed(parent)

    def leave(self) -> None:
        """Remove the keeper's folder and what is left in it."""
        for path in [*self._not_removed, self._home]:
            if path is not None:
                _removed(path)


def _remove_old(folder: str) -> None:
    """Remove the empty cgroups of keepers that are gone."""
    with suppress(OSError):
        for name in os.listdir(folder):
            pid = name.removeprefix(_PREFIX)
            if name != pid and pid.isdecimal() and _is_gone(int(pid)):
                _remove_all_of(os.path.join(folder, name))


def _is_gone(pid: int) -> bool:
    stat = read_stat(pid)
    return stat is None or stat.dead


def _remove_all_of(home: str) -> None:
    with suppress(OSError):
        for entry in os.scandir(home):
            if entry.is_dir(follow_symlinks=False):
                _removed(entry.path)
    _removed(home)


def enter(path: str, pid: int) -> bool:
    """Move a process in; False if it is gone or may not be moved."""
    return _write(os.path.join(path, "cgroup.procs"), b"%d" % pid)


def kill(path: str) -> None:
    """Kill all processes within at once, if the kernel can."""
    _write(os.path.join(path, "cgroup.kill"), b"1")


def pids(path: str) -> list[int]:
    """Return the processes within; raises OSError if that is unknown now."""
    try:
        with open(os.path.join(path, "cgroup.procs"), "rb") as file:
            return [int(word) for word in file.read().split()]
    except OSError as error:
        if error.errno in CANNOT_LOOK:
            raise
        return []


def oom_killed(path: str) -> bool:
    """Tell whether the kernel killed a process within for want of memory."""
    try:
        with open(os.path.join(path, "memory.events"), "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return False
    return any(line.startswith(b"oom_kill ") and line[9:] != b"0" for line in lines)


def _is_root(path: str) -> bool:
    """Tell whether this is the root of all cgroups, which alone has no type."""
    return not os.path.exists(os.path.join(path, "cgroup.type"))


def _words(path: str) -> set[str]:
    try:
        with open(path, encoding="ascii") as file:
            return set(file.read().split())
    except OSError:
        return set()


def _write(path: str, data: bytes) -> bool:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(descriptor, data)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _removed(path: str) -> bool:
    try:
        os.rmdir(path)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
