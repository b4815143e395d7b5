"""The processes of attempts: carries out the core's effects on them.

Each method answers with an event for the core. With `starter` and `adoption` this is
the only place that signals, reaps or watches processes; it decides nothing. If
processes cannot be inspected, for example without free descriptors, an attempt counts
as not over, and the core tries again.
"""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from signal import SIGKILL
from typing import TYPE_CHECKING

from grass.keeper import pidfd
from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.process_table import (
    MainProcess,
    ProcessTable,
    handles,
    start_ticks,
)
from grass.keeper.protocol import Usage
from grass.keeper.system import cgroups
from grass.keeper.system.adoption import AdoptedProcesses
from grass.keeper.system.poller import utc_us
from grass.keeper.system.runner_lines import RunnerLines
from grass.keeper.system.starter import Starter
from grass.keeper.system.unnamed_outputs import name_left_output

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grass.keeper.mounts import Mounts
    from grass.keeper.protocol import StartVerb
    from grass.keeper.system.poller import Feed, Poller
    from grass.keeper.system.rlimits import OpenFiles


class JobProcesses:
    """All processes of attempts."""

    def __init__(
        self, mounts: Mounts, own_cgroups: cgroups.Cgroups, files: OpenFiles
    ) -> None:
        """Begin with none; `connect` must follow."""
        self._cgroups = own_cgroups
        self._table = ProcessTable(os.getpid())
        self.runners = RunnerLines(self._table, self._remove_cgroup)
        self._limited: set[str] = set()
        """The cgroups that limit what is in them."""
        self.starter = Starter(mounts, files, self._table, self.runners)
        self.adopted = AdoptedProcesses(self._table)

    def connect(self, poller: Poller, feed: Feed) -> None:
        """Set how to wait for a descriptor and where later events go."""
        self.starter.connect(poller, feed)
        self.runners.connect(poller, feed, self.starter.child_ended)
        self.adopted.connect(poller, feed)

    def start(self, start: StartVerb) -> events.KeeperEvent:
        """Start an attempt: run its program, or watch the process of a guest."""
        if start.guest is not None:
            return self.adopted.begin(start)
        return self.starter.spawn(start)

    def reap(self) -> Iterator[events.KeeperEvent]:
        """Reap every child that has ended."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self.starter.child_ended(pid)
            self.runners.child_ended(pid)
            self.starter.unnamed.runner_ended(pid)
            self._table.reaped(pid)
            peak = _peak_memory(usage.ru_maxrss)
            used = Usage(usage.ru_utime, usage.ru_stime, peak)
            yield events.ChildEnded(pid, status, used, utc_us())

    def survey(self, effect: effects.Survey) -> events.Surveyed:
        """Look whether any process of the attempt is left."""
        try:
            left = self._anything_left(effect.id)
        except OSError:
            left = True
        written = None if left else self.starter.sizes.written(effect.id)
        size = 0 if written is None else max(0, written[0])
        if not left:
            self.starter.unnamed.ended(effect.id, written=size)
        main = self._table.mains.get(effect.id)
        killed = not left and main is not None and self._oom_killed(main)
        return events.Surveyed(effect.id, not left, size, killed)

    def _oom_killed(self, main: MainProcess) -> bool:
        if main.cgroup is None:
            return False
        if self.runners.is_kept(main.pid) and main.cgroup not in self._limited:
            return False
        return cgroups.oom_killed(main.cgroup)

    def _anything_left(self, id: str) -> bool:
        main = self._table.mains.get(id)
        if self._table.anything_left(id):
            return True
        if main is None or self.runners.is_kept(main.pid):
            # A runner that answers has no children: all else would be an orphan.
            return False
        inside = bool(main.cgroup and cgroups.pids(main.cgroup))
        return inside or self.runners.is_left(main.pid)

    def signal(self, effect: effects.SignalProcesses) -> None:
        """Send signals to every process of the attempt."""
        with suppress(OSError):
            _send(self._members(effect.id), effect.signals)

    def signal_handlers(self, effect: effects.SignalHandlers) -> None:
        """Send a signal to the processes that handle it; if none does, to all."""
        with suppress(OSError):
            members = self._members(effect.id)
            handling = [one for one in members if handles(one[0], effect.signal)]
            _send(handling or members, (effect.signal,))

    def kill(self, effect: effects.KillProcesses) -> None:
        """Kill every process of the attempt."""
        main = self._table.mains.get(effect.id)
        if main is not None and main.cgroup is not None:
            cgroups.kill(main.cgroup)
        self.signal(effects.SignalProcesses(effect.id, (SIGKILL,)))

    def _members(self, id: str) -> list[tuple[int, int]]:
        guest = self._table.guests.get(id)
        if guest is not None:
            return [(guest.pid, guest.ticks)]
        found = {stat.pid: stat.ticks for stat in self._table.members(id)}
        main = self._table.mains.get(id)
        if main is not None and main.cgroup is not None:
            for pid in cgroups.pids(main.cgroup):
                if pid not in found and (ticks := start_ticks(pid)) is not None:
                    found[pid] = ticks
        return list(found.items())

    def drop_snapshot(self) -> None:
        """Have the next call read all processes again."""
        self._table.drop_snapshot()

    def exclude(self, daemon: int) -> None:
        """Let a process belong to no attempt, also not by its cgroup."""
        self._table.daemons.add(daemon)
        self._table.drop_snapshot()
        with suppress(OSError):
            for main in self._table.mains.values():
                if main.cgroup is not None and daemon in cgroups.pids(main.cgroup):
                    self._cgroups.let_out(daemon)

    def include(self, daemon: int) -> None:
        """Undo `exclude` for a daemon that has disconnected."""
        self._table.daemons.discard(daemon)

    def set_apart(self, child: int) -> None:
        """Let a child of the keeper belong to no attempt."""
        self._table.apart.add(child)

    def end_apart(self, child: int) -> None:
        """Note that such a child is gone."""
        self._table.apart.discard(child)

    def enclose(self, effect: effects.Enclose) -> events.Enclosed | None:
        """Move the attempt's processes into a cgroup of their own, if possible."""
        main = self._table.mains.get(effect.id)
        path = None if main is None else self._cgroups.make()
        if main is None or path is None:
            return None
        if effect.memory_max or effect.cpu_max:
            self._cgroups.limit(path, effect.memory_max, effect.cpu_max)
            self._limited.add(path)
        if not cgroups.enter(path, main.pid):
            self._cgroups.remove(path)
            return None
        main.cgroup = path
        with suppress(OSError):
            self._move_all_into(path, main.id)
        return events.Enclosed(main.id, path)

    def _move_all_into(self, path: str, id: str) -> None:
        # A child of a process that is not moved yet is not in the cgroup: repeat.
        moved: set[int] = set()
        while found := {pid for pid, _ in self._members(id)} - moved:
            for pid in found:
                cgroups.enter(path, pid)
            moved |= found
            self._table.drop_snapshot()

    def name_output(self, effect: effects.NameOutput) -> None:
        """Give the output of an attempt its name, if it has none."""
        self.starter.unnamed.name(effect.id)

    def truncate(self, effect: effects.Truncate) -> None:
        """Truncate a file that became too long."""
        with suppress(OSError):
            os.truncate(effect.path, effect.size)

    def measure(self, effect: effects.Measure) -> events.OutputMeasured | None:
        """Measure how much the attempt wrote."""
        written = self.starter.sizes.written(effect.id)
        return (
            None if written is None else events.OutputMeasured(effect.id, sum(written))
        )

    def know(self, effect: effects.Know) -> None:
        """Add the process of an earlier keeper's attempt."""
        if effect.guest:
            self._table.add_guest(effect.id, effect.pid, effect.ticks)
            return
        main = self._table.add(effect.id, effect.pid, effect.ticks, adopted=True)
        main.alive = False
        main.cgroup = effect.cgroup
        if effect.runner:
            name_left_output(effect.pid, effect.ticks, effect.files[0][0])
        self.starter.sizes.add(effect.id, effect.files)

    def release(self, effect: effects.ReleaseAttempt) -> None:
        """Drop all that is held for an attempt that is over."""
        main = self._table.mains.get(effect.id)
        if main is not None and self.runners.is_kept(main.pid):
            self.runners.rest(main.pid, main.cgroup)
        elif main is not None and main.cgroup is not None:
            self._remove_cgroup(main.cgroup)
        self._table.remove(effect.id)
        self.starter.sizes.remove(effect.id)
        self.starter.unnamed.ended(effect.id, self.starter.unnamed.written(effect.id))
        self.adopted.release(effect.id)

    def _remove_cgroup(self, path: str) -> None:
        self._limited.discard(path)
        self._cgroups.remove(path)

    def leave(self) -> None:
        """Remove the cgroups that the keeper created."""
        self._cgroups.leave()


def _peak_memory(kib: int) -> int | None:
    """Return a job's peak memory, unless the keeper's own hides it.

    A new process begins with the memory of its parent, and the kernel counts that into
    its peak: the peak of a job that stayed below the keeper's size is unknown.
    """
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kib << 10 if kib > own else None


def _send(members: list[tuple[int, int]], signals: tuple[int, ...]) -> None:
    for pid, ticks in members:
        with suppress(OSError):
            pidfd.send_signals(pid, ticks, signals)
