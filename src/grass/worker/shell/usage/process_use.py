"""What the processes of attempts use, read from /proc and cgroups.

Where the keeper has given an attempt a cgroup, that lists its processes and counts
their processor time. Otherwise they are found as the keeper finds them. That takes a
look at every process of the machine, so on a machine with many it is done less often;
between two such looks a process that is new is found only if it is on a GPU.

How much memory they have together is counted in `process_memory`.
"""

import os
import re
import time
from collections.abc import Callable, Iterable, Mapping

from grass.keeper.mounts import find_cgroup2, read_mountinfo
from grass.keeper.process_owners import ProcessOwners
from grass.keeper.process_table import Stat, boot_ticks, cgroup_of, parsed_stat
from grass.worker.core.usage.samples import ProcessUse, RunningAttempt
from grass.worker.shell.kept_files import KeptFiles
from grass.worker.shell.usage.process_memory import PAGE, ProcessMemory

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
LOOK_SHARE = 0.002
"""Which part of a core looking at all processes may take."""
CGROUP_BY_S = 10.0
"""An attempt that has no cgroup by this age gets none."""
OLDER_S = 1.0
"""A process that is older than its attempt by more is a runner."""
_OWN_CGROUP = re.compile(r"/grass-\d+/\d+\Z")


class AttemptProcesses:
    """The processes of all attempts of one keeper."""

    def __init__(
        self, keeper_pid: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.keeper_pid = keeper_pid
        self._clock = clock
        self._files = KeptFiles()
        self._memory = ProcessMemory(clock)
        self._owners = ProcessOwners(keeper_pid)
        self._owners.daemons.add(os.getpid())
        self._mount = find_cgroup2(read_mountinfo())
        self._cgroups: dict[str, str] = {}
        self._found: dict[str, set[int]] = {}
        """The processes of attempts without a cgroup, as last found."""
        self._look_at = float("-inf")
        self._cpu: dict[str, tuple[float, float]] = {}
        """Processor time of the processes there were last, and of those that ended."""
        self._before_cgroup: dict[str, float] = {}
        self._before_attempt: dict[str, float | None] = {}
        """Processor time of a runner before its attempt; None: to be read."""

    def close(self) -> None:
        """Close what is open; `read` is not called any more."""
        self._owners.close()
        self._files.close()

    def read(
        self,
        attempts: Mapping[str, RunningAttempt],
        due: Iterable[str],
        on_gpus: Iterable[int],
    ) -> dict[str, ProcessUse]:
        """Return what those of the attempts use that are due.

        So it does of any other that one of the processes on GPUs turns out to be of.
        """
        self._follow(attempts)
        self._look_at_all(attempts)
        found = {name: self._pids(name) for name in due}
        known = {pid for pids in found.values() for pid in pids}
        for pid in on_gpus:
            owner = None if pid in known else self._owner_of(pid)
            if owner is not None:
                found.setdefault(owner, self._pids(owner)).add(pid)
        uses = {name: self._use(name, pids) for name, pids in found.items()}
        self._memory.walk_if_due()
        self._files.look_done()
        return uses

    def _follow(self, attempts: Mapping[str, RunningAttempt]) -> None:
        """Keep what is known of these attempts, and forget all others."""
        for name in self._owners.mains.keys() - attempts.keys():
            self._owners.remove(name)
            self._cgroups.pop(name, None)
            self._found.pop(name, None)
            self._cpu.pop(name, None)
            self._before_cgroup.pop(name, None)
            self._before_attempt.pop(name, None)
        for name, one in attempts.items():
            if name not in self._owners.mains:
                self._owners.add(name, one.pid, one.ticks, adopted=False)
                self._found[name] = {one.pid}
                if boot_ticks() - one.ticks > (one.age_s + OLDER_S) * TICKS_PER_S:
                    self._before_attempt[name] = None
            if name not in self._cgroups and one.age_s < CGROUP_BY_S:
                self._find_cgroup(name, one.pid)

    def _find_cgroup(self, name: str, pid: int) -> None:
        path = cgroup_of(pid)
        if self._mount is not None and path and _OWN_CGROUP.search(path):
            self._cgroups[name] = os.path.join(self._mount, path.lstrip("/"))
            self._owners.mains[name].cgroup = self._cgroups[name]

    def _look_at_all(self, attempts: Mapping[str, RunningAttempt]) -> None:
        """Find the processes of attempts without a cgroup, if that is due."""
        began = self._clock()
        without = [name for name in attempts if name not in self._cgroups]
        if not without or began < self._look_at:
            return
        found: dict[str, set[int]] = {name: set() for name in without}
        try:
            owners = self._owners.all_owners()
        except OSError:
            return
        for pid, owner in owners.items():
            if owner in found:
                found[owner].add(pid)
        self._found.update(found)
        self._look_at = self._clock() + (self._clock() - began) / LOOK_SHARE

    def _pids(self, name: str) -> set[int]:
        path = self._cgroups.get(name)
        if path is None:
            return set(self._found[name])
        try:
            return set(map(int, self._files.read(f"{path}/cgroup.procs").split()))
        except OSError:
            return set()

    def _owner_of(self, pid: int) -> str | None:
        try:
            return self._owners.owner_of(pid)
        except OSError:
            return None

    def _use(self, name: str, pids: set[int]) -> ProcessUse:
        stats = [stat for stat in map(self._stat, pids) if stat is not None]
        main = self._owners.mains[name]
        # A pid may have been given to another process since it was found.
        live = [one for one in stats if not one.dead and one.ticks >= main.ticks]
        cpu_s = self._cgroup_cpu_s(name, live)
        if cpu_s is None:
            cpu_s = self._counted(name, _cpu_s(live))
        cpu_s -= self._used_before(name, cpu_s)
        alive = frozenset(one.pid for one in live)
        return ProcessUse(alive, PAGE * self._memory.pages(live), cpu_s)

    def _used_before(self, name: str, cpu_s: float) -> float:
        """Return what a runner had used when its attempt was first looked at."""
        before_s = self._before_attempt.get(name, 0.0)
        if before_s is None:
            before_s = self._before_attempt[name] = cpu_s
        return before_s

    def _stat(self, pid: int) -> Stat | None:
        try:
            return parsed_stat(pid, self._files.read(f"/proc/{pid}/stat"))
        except OSError:
            return None

    def _counted(self, name: str, now_s: float) -> float:
        """Return processor time that does not fall when a process has ended."""
        before_s, ended_s = self._cpu.get(name, (0.0, 0.0))
        ended_s += max(0.0, before_s - now_s)
        self._cpu[name] = now_s, ended_s
        return now_s + ended_s

    def _cgroup_cpu_s(self, name: str, live: list[Stat]) -> float | None:
        """Return the processor time that an attempt's cgroup counts, if it has one.

        What its processes used before they were in it is added.
        """
        path = self._cgroups.get(name)
        if path is None:
            return None
        try:
            text = self._files.read(f"{path}/cpu.stat")
            label, microseconds, *_ = text.split(None, 2)
        except (OSError, ValueError):
            return None
        if label != b"usage_usec":
            return None
        inside_s = int(microseconds) / 1e6
        if name not in self._before_cgroup:
            so_far_s = max(self._counted(name, _cpu_s(live)), inside_s)
            self._before_cgroup[name] = so_far_s - inside_s
        return inside_s + self._before_cgroup[name]


def _cpu_s(stats: list[Stat]) -> float:
    return sum(one.cpu_ticks for one in stats) / TICKS_PER_S
