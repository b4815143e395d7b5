"""A cgroup of its own for each job that lives long enough, where one can be made.

Nothing here is needed for correctness: without cgroups a tree is found by session,
descent and marker. With one, a process that hid from all three is still found and
killed. No controller is switched on, so limits and accounting stay as they are.

They lie in one folder for each keeper. What a killed one left behind goes with the next
keeper that comes up beside it: only what is empty can be removed.
"""

from __future__ import annotations

import os
from contextlib import suppress

from grass.keeper.system.process_table import CANNOT_LOOK, cgroup_of, read_stat

_PREFIX = "grass-"


def find_cgroup2(mountinfo_text: str) -> str | None:
    """Return where the unified hierarchy is mounted, also beside the old ones."""
    for line in mountinfo_text.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if right.split(" ")[0] == "cgroup2" and len(fields) >= 5 and fields[3] == "/":
            return fields[4]
    return None


class Cgroups:
    """Makes, asks, kills and removes the cgroups of one keeper's jobs."""

    def __init__(self, mountinfo_text: str, pid: int) -> None:
        mount = find_cgroup2(mountinfo_text)
        own = cgroup_of(pid)
        self._home: str | None = None
        if mount is not None and own is not None:
            beside = os.path.join(mount, own.lstrip("/"))
            self._home = os.path.join(beside, f"{_PREFIX}{pid}")
            _sweep(beside)
        self._count = 0
        self._stubborn: list[str] = []

    def make(self) -> str | None:
        """Make an empty cgroup and return its path; None where that is not allowed."""
        if self._home is None:
            return None
        self._count += 1
        path = os.path.join(self._home, str(self._count))
        try:
            os.makedirs(self._home, exist_ok=True)
            os.mkdir(path)
        except FileExistsError:
            # Left by a keeper that had this pid before: what is in it is not ours.
            return self.make()
        except OSError:
            # It will not be allowed the next time either.
            self._home = None
            return None
        return path

    def let_out(self, pid: int) -> None:
        """Move a process to where the keeper itself is."""
        if self._home is not None:
            enter(os.path.dirname(self._home), pid)

    def remove(self, path: str) -> None:
        """Remove a cgroup; one that is still busy is tried again with the next."""
        self._stubborn.append(path)
        self._stubborn = [each for each in self._stubborn if not _removed(each)]
        parent = os.path.dirname(path)
        if parent != self._home:
            _removed(parent)

    def leave(self) -> None:
        """Remove what is left of the keeper's own."""
        for path in [*self._stubborn, self._home]:
            if path is not None:
                _removed(path)


def _sweep(folder: str) -> None:
    """Remove what keepers left in a folder that are gone, as far as it is empty."""
    with suppress(OSError):
        for name in os.listdir(folder):
            pid = name.removeprefix(_PREFIX)
            if name != pid and pid.isdecimal() and _is_gone(int(pid)):
                _sweep_one(os.path.join(folder, name))


def _is_gone(pid: int) -> bool:
    stat = read_stat(pid)
    return stat is None or stat.dead


def _sweep_one(home: str) -> None:
    with suppress(OSError):
        for entry in os.scandir(home):
            if entry.is_dir(follow_symlinks=False):
                _removed(entry.path)
    _removed(home)


def enter(path: str, pid: int) -> bool:
    """Move a process in; False when it is gone or may not be moved."""
    return _write(os.path.join(path, "cgroup.procs"), b"%d" % pid)


def kill(path: str) -> None:
    """Kill everything within at once, where the kernel can."""
    _write(os.path.join(path, "cgroup.kill"), b"1")


def pids(path: str) -> list[int]:
    """Return the processes within; raises OSError when there is no means to look."""
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
