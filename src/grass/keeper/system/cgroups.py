"""A cgroup of its own for each job that runs long enough, if one can be created.

Nothing here is needed for correctness: without cgroups the processes of a job are found
by session, descent and marker. With one, a process without any of these is still found
and killed. No controller is enabled, so limits and accounting stay as they are.

Each keeper has one folder of cgroups. The next keeper removes the empty cgroups that a
killed keeper left.
"""

from __future__ import annotations

import os
from contextlib import suppress

from grass.keeper.mounts import find_cgroup2
from grass.keeper.process_table import CANNOT_LOOK, cgroup_of, read_stat

_PREFIX = "grass-"


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
        self._count = 0
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
            enter(os.path.dirname(self._home), pid)

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
