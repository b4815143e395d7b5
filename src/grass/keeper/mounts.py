"""Which paths are on a network file system, which may hang.

Symbolic links are resolved here, up to the first network mount, so that no path that
could hang is ever accessed. The table of mounts is read again only when the kernel
reports a change.
"""

from __future__ import annotations

import os
import select

# fmt: off
_NETWORK_TYPES = frozenset((
    "9p", "acfs", "afs", "autofs", "ceph", "cifs", "coda", "gfs", "gfs2", "glusterfs",
    "gpfs", "kafs", "lustre", "mmfs", "ncp", "ncpfs", "ocfs2", "orangefs", "panfs",
    "pvfs2", "virtiofs", "wekafs",
))
# fmt: on
_NETWORK_PREFIXES = ("nfs", "smb", "fuse", "beegfs")
_LOCAL_FUSE = frozenset(("fusectl", "fuseblk", "fuse.lxcfs", "fuse.fuse-overlayfs"))
_MAX_LINKS = 40


def network_mount(path: str, mountinfo_text: str) -> str | None:
    """Return the network mount an absolute path leads into, or None."""
    mounts = parse_mounts(mountinfo_text)
    return _lead_into_network(path, mounts) if any(mounts.values()) else None


def read_mountinfo() -> str:
    """Return this machine's table of mounts, empty if there is none."""
    try:
        with open("/proc/self/mountinfo", "rb") as file:
            return os.fsdecode(file.read())
    except OSError:
        return ""


def find_cgroup2(mountinfo_text: str) -> str | None:
    """Return where cgroup v2 is mounted, also on a hybrid system."""
    for line in mountinfo_text.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if right.split(" ")[0] == "cgroup2" and len(fields) >= 5 and fields[3] == "/":
            return fields[4]
    return None


def parse_mounts(mountinfo_text: str) -> dict[str, bool]:
    """Return for each mount point whether it is a network mount."""
    mounts = {}
    for line in mountinfo_text.splitlines():
        left, _, right = line.partition(" - ")
        fields = left.split(" ")
        if len(fields) >= 5 and right:
            mounts[_unescape(fields[4])] = _is_network(right.split(" ")[0])
    return mounts


def _is_network(kind: str) -> bool:
    if kind in _LOCAL_FUSE:
        return False
    return kind in _NETWORK_TYPES or kind.startswith(_NETWORK_PREFIXES)


def _unescape(text: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n")):
        text = text.replace(code, character)
    return text.replace("\\134", "\\")


def _lead_into_network(path: str, mounts: dict[str, bool]) -> str | None:
    here = "/"
    todo = [part for part in reversed(path.split("/")) if part]
    links = 0
    while todo:
        if mounts.get(here):
            return here
        part = todo.pop()
        if part == "..":
            here = os.path.dirname(here)
        elif part != ".":
            step = os.path.join(here, part)
            target = None if mounts.get(step) else _link_target(step)
            if target is None:
                here = step
                continue
            links += 1
            if links > _MAX_LINKS:
                return None
            todo.extend(part for part in reversed(target.split("/")) if part)
            here = "/" if target.startswith("/") else here
    return here if mounts.get(here) else None


def _link_target(path: str) -> str | None:
    try:
        return os.readlink(path)
    except OSError:
        return None


class Mounts:
    """The mounts of this machine, kept up to date by one poll per call."""

    def __init__(self) -> None:
        self._table: dict[str, bool] = {}
        self._has_network = False
        self._poll = select.poll()
        try:
            self._file = os.open("/proc/self/mountinfo", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        self._poll.register(self._file, select.POLLPRI | select.POLLERR)
        self._poll.poll(0)
        self._read()

    def _read(self) -> None:
        self._table = parse_mounts(read_mountinfo())
        self._has_network = any(self._table.values())

    def has_network(self) -> bool:
        """Tell whether there is a network mount now."""
        if self._poll.poll(0):
            self._read()
        return self._has_network

    def touches_network(self, paths: list[str]) -> bool:
        """Tell whether any of the absolute paths may hang."""
        if not self.has_network():
            return False
        return any(_lead_into_network(path, self._table) for path in paths)
