"""Which processes belong to which attempt, read from /proc.

A process belongs to an attempt if it is its main process, is in that one's session,
descends from such a process, is in the attempt's cgroup or has its marker in the
environment. Any other orphan belongs to an attempt once no other attempt with a live
main process could have started it. A daemon belongs to no attempt, even if a job
started it.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from typing import NamedTuple

from grass.keeper.protocol import MARKER

_MARKER = f"{MARKER}=".encode()
CANNOT_LOOK = frozenset((errno.EMFILE, errno.ENFILE, errno.ENOMEM))
"""Errors that only mean that a process cannot be inspected now."""
_SHORT_READ = 2048
_NS_PER_TICK = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


class Stat(NamedTuple):
    """The fields of /proc/PID/stat that are used here."""

    pid: int
    ppid: int
    session: int
    ticks: int
    dead: bool
    cpu_ticks: int = 0
    """Processor time, that of children it waited for included."""
    resident: int = 0
    """Memory, in pages."""
    start_stack: int = 0
    """Where its stack begins; a fork has it at the same place. 0: not told."""


class MainProcess:
    """The main process of an attempt that is not over, and its cgroup."""

    __slots__ = ("adopted", "alive", "cgroup", "id", "pid", "ticks")

    def __init__(self, id: str, pid: int, ticks: int, adopted: bool) -> None:
        self.id = id
        self.pid = pid
        self.ticks = ticks
        self.adopted = adopted
        self.alive = True
        self.cgroup: str | None = None


def read_stat(pid: int) -> Stat | None:
    """Read one process; None when it does not exist.

    Raises OSError if that is unknown, for example without free descriptors.
    """
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, ProcessLookupError):
        return None
    try:
        text = os.read(descriptor, 1024)
    except ProcessLookupError:
        return None
    finally:
        os.close(descriptor)
    return parsed_stat(pid, text)


def parsed_stat(pid: int, text: bytes) -> Stat:
    """Return what /proc/PID/stat holds."""
    # The name may hold anything, so count fields from its closing bracket.
    fields = text[text.rindex(b")") + 2 :].split(None, 26)
    dead = fields[0] in (b"Z", b"X") and int(fields[17]) <= 1
    return Stat(
        pid,
        int(fields[1]),
        int(fields[3]),
        int(fields[19]),
        dead,
        sum(map(int, fields[11:15])),
        int(fields[21]),
        int(fields[25]),
    )


def start_ticks(pid: int) -> int | None:
    """Return when the process started, in clock ticks since boot; as `read_stat`."""
    stat = read_stat(pid)
    return None if stat is None else stat.ticks


def boot_ticks() -> int:
    """Return the time now, as the kernel would note it for a new process."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // _NS_PER_TICK


def all_stats() -> dict[int, Stat]:
    """Read all processes, or raise OSError; hidden ones do not belong to jobs."""
    stats = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(PermissionError):
            stat = read_stat(int(name))
            if stat is not None:
                stats[stat.pid] = stat
    return stats


def marker_of(pid: int) -> str | None:
    """Return the attempt id in the environment of a process, if it is readable.

    Raises OSError if it cannot be read now.
    """
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read()
    except OSError as error:
        if error.errno in CANNOT_LOOK:
            raise
        return None
    for variable in environment.split(b"\0"):
        if variable.startswith(_MARKER):
            return os.fsdecode(variable[len(_MARKER) :])
    return None


def handles(pid: int, signal: int) -> bool:
    """Tell whether a process has a handler for a signal."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return False
    caught = next((line for line in lines if line.startswith(b"SigCgt:")), b":0")
    return bool(int(caught.partition(b":")[2], 16) >> (signal - 1) & 1)


def cgroup_of(pid: int) -> str | None:
    """Return the path of a process within the cgroup v2 hierarchy."""
    try:
        with open(f"/proc/{pid}/cgroup", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(b"0::"):
            return os.fsdecode(line[3:])
    return None


def _open_children(pid: int) -> int | None:
    """Open the list of a process's children; not every kernel is built with it."""
    try:
        return os.open(f"/proc/{pid}/task/{pid}/children", os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None


class ProcessTable:
    """The processes of all attempts that are not over."""

    def __init__(self, keeper_pid: int) -> None:
        """Begin empty; orphans are children of `keeper_pid`."""
        self.mains: dict[str, MainProcess] = {}
        self.guests: dict[str, MainProcess] = {}
        """Processes that others started: of such an attempt they are all there is."""
        self.daemons: set[int] = set()
        """Processes that are connected to the keeper; they belong to no attempt."""
        self.apart: set[int] = set()
        """Children of the keeper that are of no attempt: idle runners, and the one
        that syncs records."""
        self._keeper = keeper_pid
        self._by_pid: dict[int, MainProcess] = {}
        self._children = _open_children(keeper_pid)
        self._owners: dict[tuple[int, int], str] = {}
        self._snapshot: dict[int, Stat] | None = None

    def add(self, id: str, pid: int, ticks: int, *, adopted: bool) -> MainProcess:
        """Add an attempt's main process."""
        main = MainProcess(id, pid, ticks, adopted)
        self.mains[id] = main
        if not adopted:
            self._by_pid[pid] = main
        return main

    def add_guest(self, id: str, pid: int, ticks: int) -> None:
        """Add the process of a guest."""
        self.guests[id] = MainProcess(id, pid, ticks, adopted=True)

    def watched(self, id: str) -> MainProcess:
        """Return an attempt's process that is not a child of the keeper."""
        return self.guests.get(id) or self.mains[id]

    def reaped(self, pid: int) -> None:
        """Note that a child of the keeper is gone."""
        main = self._by_pid.pop(pid, None)
        if main is not None:
            main.alive = False

    def remove(self, id: str) -> None:
        """Remove an attempt whose processes are gone."""
        self.guests.pop(id, None)
        main = self.mains.pop(id, None)
        if main is not None and self._by_pid.get(main.pid) is main:
            del self._by_pid[main.pid]
        if not self.mains:
            self._owners.clear()

    def anything_left(self, id: str) -> bool:
        """Tell whether an attempt without a main process has other processes left."""
        main = self.mains.get(id)
        if main is None:
            return False
        if main.adopted:
            # One reading of /proc can miss a fork, two hardly ever.
            return any(self._members_now(id) for _ in range(2))
        return any(self._belongs_to(main, stat) for stat in self._orphans())

    def drop_snapshot(self) -> None:
        """Have the next call read all processes again."""
        self._snapshot = None

    def _members_now(self, id: str) -> list[Stat]:
        self.drop_snapshot()
        return self.members(id)

    def members(self, id: str) -> list[Stat]:
        """Return every live process of the attempt, as last read."""
        main = self.mains.get(id)
        if main is None:
            return []
        if self._snapshot is None:
            self._snapshot = all_stats()
        stats = self._snapshot
        belongs = dict.fromkeys(self._never_members(stats), False)
        return [
            stat
            for stat in stats.values()
            if not stat.dead and self._belongs(main, stat, stats, belongs)
        ]

    def _never_members(self, stats: dict[int, Stat]) -> set[int]:
        """Return daemons, the keeper and its ancestors.

        Membership is inherited: if init were a member, all processes would be.
        """
        never = {0, 1, *self.daemons}
        above: Stat | None = stats.get(self._keeper)
        while above is not None and above.pid not in never:
            never.add(above.pid)
            above = stats.get(above.ppid)
        return never

    def _belongs(
        self,
        main: MainProcess,
        stat: Stat,
        stats: dict[int, Stat],
        known: dict[int, bool],
    ) -> bool:
        """Follow the parents up to one whose membership is known."""
        chain = []
        verdict: bool | None = None
        while verdict is None:
            if stat.pid in known:
                verdict = known[stat.pid]
                break
            chain.append(stat.pid)
            verdict = self._is_member(main, stat, stats)
            parent = stats.get(stat.ppid)
            if verdict is None and (parent is None or parent.pid in chain):
                verdict = False
            elif parent is not None:
                stat = parent
        for pid in chain:
            known[pid] = verdict
        return verdict

    def _is_member(
        self, main: MainProcess, stat: Stat, stats: dict[int, Stat]
    ) -> bool | None:
        """Decide by the process itself; None: as its parent."""
        if stat.ticks < main.ticks or stat.pid == main.pid:
            return stat.ticks == main.ticks
        if self._is_in_session(main, stat, stats):
            return True
        if stat.pid in self._by_pid or stat.pid in self.apart:
            return False
        if stat.ppid == self._keeper:
            return self._belongs_to(main, stat)
        if main.adopted and marker_of(stat.pid) == main.id:
            return True
        return None

    def _is_in_session(
        self, main: MainProcess, stat: Stat, stats: dict[int, Stat]
    ) -> bool:
        # Processes from outside a pid namespace appear in session 0.
        if stat.session != main.pid or main.pid <= 1:
            return False
        # The kernel does not reuse the pid of a session that exists, so only a leader
        # with another start time shows that this is another session.
        leader = stats.get(main.pid)
        return leader is None or leader.ticks == main.ticks

    def _orphans(self) -> list[Stat]:
        """Return the children of the keeper that are no attempt's main process."""
        children = map(int, self._read_children().split())
        known = self.daemons | self.apart | self._by_pid.keys()
        found = [read_stat(pid) for pid in children if pid not in known]
        return [stat for stat in found if stat is not None and not stat.dead]

    def _read_children(self) -> bytes:
        if self._children is None:
            own = [s.pid for s in all_stats().values() if s.ppid == self._keeper]
            return b" ".join(b"%d" % pid for pid in own)
        text = chunk = os.pread(self._children, 1 << 16, 0)
        # One read returns at most a page.
        while len(chunk) > _SHORT_READ:
            chunk = os.pread(self._children, 1 << 16, len(text))
            text += chunk
        return text

    def _belongs_to(self, main: MainProcess, orphan: Stat) -> bool:
        owner = self._owner(orphan)
        if owner is not None:
            return owner == main.id
        return orphan.ticks >= main.ticks and not any(
            other.alive and other is not main and other.ticks <= orphan.ticks
            for other in self.mains.values()
        )

    def _owner(self, orphan: Stat) -> str | None:
        key = (orphan.pid, orphan.ticks)
        owner = self._owners.get(key)
        if owner is None:
            owner = self._owner_by_traits(orphan)
            if owner is not None:
                self._owners[key] = owner
        return owner

    def _owner_by_traits(self, orphan: Stat) -> str | None:
        for main in self.mains.values():
            if main.pid == orphan.session and main.pid > 1:
                return main.id
        marker = marker_of(orphan.pid)
        if marker in self.mains:
            return marker
        cgroup = cgroup_of(orphan.pid)
        if cgroup is None or cgroup == "/":
            return None
        for main in self.mains.values():
            if main.cgroup is not None and main.cgroup.endswith(cgroup):
                return main.id
        return None
