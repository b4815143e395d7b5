"""Machines that run short: a small disk to fill, and a process that may not fork."""

import contextlib
import itertools
import os
import resource
import secrets
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.patience import until

PIDS_CGROUPS = ("/sys/fs/cgroup/pids", "/sys/fs/cgroup")
"""Where processes can be counted, by the old hierarchies and by the new one."""


@contextlib.contextmanager
def small_disk(folder: Path, size: int, files: int = 10_000) -> Iterator[Path]:
    """Mount a disk of its own on a folder; only root may."""
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size},nr_inodes={files}"]
    options += ["grass-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(["mount", *options], check=False).returncode:
        pytest.skip("mounting a small disk needs root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def use_up_files(disk: Path) -> None:
    """Let no more files be made."""
    with contextlib.suppress(OSError):
        for number in itertools.count():
            (disk / f"filler-{number}").touch()


def fill(disk: Path) -> None:
    """Leave not a byte of room."""
    with (disk / "filler").open("ab", buffering=0) as filler:
        for size in (1 << 20, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    filler.write(b"x" * size)


def make_room(disk: Path) -> None:
    """Undo `fill` and `use_up_files`."""
    for filler in disk.glob("filler*"):
        filler.unlink()


class ForkLimit:
    """Keeps one process from making others: by a cgroup for root, else by its limit."""

    def __init__(self) -> None:
        self._group: Path | None = None
        self._limited: list[tuple[int, tuple[int, int]]] = []

    def deny(self, pid: int) -> None:
        """Let a process make no other until `allow`."""
        if os.geteuid() == 0:
            group = self._group or self._made()
            (group / "cgroup.procs").write_text(str(pid))
            (group / "pids.max").write_text("1")
            return
        before = resource.prlimit(pid, resource.RLIMIT_NPROC)
        self._limited.append((pid, before))
        resource.prlimit(pid, resource.RLIMIT_NPROC, (1, before[1]))

    def _made(self) -> Path:
        for root in map(Path, PIDS_CGROUPS):
            group = root / f"grass-test-{secrets.token_hex(4)}"
            with contextlib.suppress(OSError):
                group.mkdir()
                if (group / "pids.max").exists():
                    self._group = group
                    return group
                group.rmdir()
        pytest.skip("there is no cgroup that counts processes")

    def allow(self) -> None:
        """Let it make processes again."""
        if self._group is not None:
            (self._group / "pids.max").write_text("max")
        for pid, before in self._limited:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(pid, resource.RLIMIT_NPROC, before)
        self._limited.clear()

    def end(self) -> None:
        """Leave no cgroup behind."""
        self.allow()
        if self._group is not None:
            until(self._in_the_way, "a cgroup cannot be removed", lambda left: not left)

    def _in_the_way(self) -> list[str]:
        """Move all processes out of the cgroup and remove it; tell what is left in it.

        A process that is ending cannot be moved, and counts until it is gone. A keeper
        that started in here has made cgroups of its own inside, and may be killed.
        """
        assert self._group is not None
        inside = sorted(each for each in self._group.rglob("*") if each.is_dir())
        left = [
            why for each in (*reversed(inside), self._group) for why in _removed(each)
        ]
        if not left:
            self._group = None
        return left


def _removed(group: Path) -> list[str]:
    """Empty a cgroup into the one around it and remove it; tell what is in the way."""
    left = []
    try:
        for pid in (group / "cgroup.procs").read_text().split():
            try:
                (group.parent / "cgroup.procs").write_text(pid)
            except OSError as error:
                left.append(f"{pid}: {error}")
        group.rmdir()
    except OSError as error:
        left.append(str(error))
    return left if group.exists() else []


@pytest.fixture
def forks() -> Iterator[ForkLimit]:
    """A limit that is gone after the test."""
    limit = ForkLimit()
    yield limit
    limit.end()
