"""The real processes of attempts: carries out what the core wants done to them.

Each method answers with the event that tells the core what came of it. This is the
only place that signals, reaps or watches processes; it decides nothing.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from grass.keeper import cgroups, effects, events, pidfd
from grass.keeper.spawn import (
    CannotStart,
    Outputs,
    Spawner,
    WouldBlock,
    read_reports,
    search_path,
)
from grass.keeper.tree import (
    Forest,
    all_stats,
    boot_ticks,
    marker_of,
    start_ticks,
)
from grass.keeper.usage import Written, peak_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from grass.keeper.mounts import Mounts

    Watch = Callable[[int, Callable[[], None]], None]
    Feed = Callable[[events.Event], None]


class Careful:
    """A careful start under way: what its child has reported so far."""

    __slots__ = ("pid", "reader", "report", "spec")

    def __init__(self, spec: events.Spec, pid: int, reader: int) -> None:
        """Begin without a report."""
        self.spec = spec
        self.pid = pid
        self.reader = reader
        self.report: dict[str, object] = {}


class Jobs:
    """Everything the keeper holds of running attempts."""

    def __init__(self, mounts: Mounts, own_cgroups: cgroups.Cgroups) -> None:
        """Begin with none; `connect` must follow."""
        self._mounts = mounts
        self._cgroups = own_cgroups
        self._spawner = Spawner()
        self._forest = Forest(os.getpid())
        self._written: dict[str, Written] = {}
        self._careful: dict[int, Careful] = {}
        self._adopted: dict[str, int] = {}

    def connect(
        self,
        watch: Watch,
        watch_for_end: Watch,
        unwatch: Callable[[int], None],
        feed: Feed,
    ) -> None:
        """Say how to wait for a descriptor and whom to tell what came of it."""
        self._watch = watch
        self._watch_for_end = watch_for_end
        self._unwatch = unwatch
        self._feed = feed

    def spawn(self, spec: events.Spec, *, careful: bool = False) -> events.Event:
        """Start the program, the careful way where the fast one might hang."""
        try:
            if careful or self._needs_care(spec):
                return self._fork(spec)
            began = boot_ticks()
            pid, outputs = self._spawner.spawn(spec)
        except WouldBlock:
            return self._fork(spec)
        except CannotStart as error:
            return events.SpawnFailed(spec.id, str(error), utc_us())
        except OSError as error:
            reason = f"could not start: {error.strerror}"
            return events.SpawnFailed(spec.id, reason, utc_us())
        # A process that began within one tick began at that tick: reading /proc for
        # it would cost a third as much as the spawn itself.
        ticks = began if boot_ticks() == began else start_ticks(pid) or 0
        self._forest.plant(spec.id, pid, ticks, adopted=False)
        return self._spawned(spec, pid, outputs)

    def _needs_care(self, spec: events.Spec) -> bool:
        if spec.nice or spec.cpus is not None:
            return True
        return self._mounts.has_network() and self._touches_network(spec)

    def _touches_network(self, spec: events.Spec) -> bool:
        paths = [spec.cwd, spec.output, spec.stderr or "/", spec.argv[0]]
        paths.extend(search_path(spec))
        return self._mounts.touches_network([os.path.join(spec.cwd, p) for p in paths])

    def _spawned(self, spec: events.Spec, pid: int, outputs: Outputs) -> events.Spawned:
        files = [(os.path.join(spec.cwd, spec.output), outputs.offset)]
        if spec.stderr is not None and spec.stderr != spec.output:
            path = os.path.join(spec.cwd, spec.stderr)
            files.append((path, outputs.stderr_offset))
        self._note_files(spec.id, files)
        return events.Spawned(
            spec.id,
            pid,
            self._forest.mains[spec.id].ticks,
            utc_us(),
            outputs.offset,
            outputs.stderr_offset,
        )

    def _note_files(self, id: str, files: list[tuple[str, int]]) -> None:
        local = not self._mounts.touches_network([path for path, _ in files])
        self._written[id] = Written(files, local)

    def _fork(self, spec: events.Spec) -> events.Forked:
        pid, reader = self._spawner.fork(spec)
        ticks = start_ticks(pid) or 0
        self._forest.plant(spec.id, pid, ticks, adopted=False)
        careful = Careful(spec, pid, reader)
        self._careful[pid] = careful
        self._watch(reader, lambda: self._heard(careful))
        return events.Forked(spec.id, pid, ticks)

    def _heard(self, careful: Careful) -> None:
        news, ended = read_reports(careful.reader)
        careful.report.update(news)
        if not ended:
            return
        self._unwatch(careful.reader)
        os.close(careful.reader)
        del self._careful[careful.pid]
        report = careful.report
        if "error" in report:
            reason = str(report["error"])
            self._feed(events.SpawnFailed(careful.spec.id, reason, utc_us()))
        elif "offset" in report:
            offset, other = int(str(report["offset"])), int(str(report["stderr"]))
            outputs = Outputs(-1, -1, offset, other)
            self._feed(self._spawned(careful.spec, careful.pid, outputs))

    def reap(self) -> Iterator[events.Event]:
        """Collect every child that has ended."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._careful:
                self._heard(self._careful[pid])
            self._forest.reaped(pid)
            rusage = {
                "user_s": usage.ru_utime,
                "system_s": usage.ru_stime,
                "max_rss": peak_memory(usage.ru_maxrss),
            }
            yield events.ChildEnded(pid, status, rusage, utc_us())

    def survey(self, effect: effects.Survey) -> events.Surveyed:
        """Look whether anything of the attempt is left."""
        main = self._forest.mains.get(effect.id)
        left = self._forest.anything_left(effect.id)
        if not left and main is not None and main.cgroup is not None:
            left = bool(cgroups.pids(main.cgroup))
        written = self._written.get(effect.id)
        size = written.sizes()[0] if written is not None and not left else 0
        return events.Surveyed(effect.id, not left, max(0, size))

    def signal_tree(self, effect: effects.SignalTree) -> None:
        """Send signals to every process of the attempt."""
        for pid, ticks in self._members(effect.id):
            pidfd.send_signals(pid, ticks, effect.signals)

    def kill_tree(self, effect: effects.KillTree) -> None:
        """Kill every process of the attempt."""
        main = self._forest.mains.get(effect.id)
        if main is not None and main.cgroup is not None:
            cgroups.kill(main.cgroup)
        for pid, ticks in self._members(effect.id):
            pidfd.send_signals(pid, ticks, (signal.SIGKILL,))

    def _members(self, id: str) -> list[tuple[int, int]]:
        found = {stat.pid: stat.ticks for stat in self._forest.members(id)}
        main = self._forest.mains.get(id)
        if main is not None and main.cgroup is not None:
            for pid in cgroups.pids(main.cgroup):
                if pid not in found and (ticks := start_ticks(pid)) is not None:
                    found[pid] = ticks
        return list(found.items())

    def look_away(self) -> None:
        """Forget what was read of all processes, which is old by now."""
        self._forest.look_away()

    def spare(self, daemon: int) -> None:
        """Count a process to no attempt, and let it out of an attempt's cgroup."""
        self._forest.daemons.add(daemon)
        self._forest.look_away()
        for main in self._forest.mains.values():
            if main.cgroup is not None and daemon in cgroups.pids(main.cgroup):
                self._cgroups.let_out(daemon)

    def spare_no_more(self, daemon: int) -> None:
        """Forget a daemon that hung up."""
        self._forest.daemons.discard(daemon)

    def enclose(self, effect: effects.Enclose) -> events.Enclosed | None:
        """Move the attempt's tree into a cgroup of its own, if one can be made."""
        main = self._forest.mains.get(effect.id)
        path = None if main is None else self._cgroups.make()
        if main is None or path is None:
            return None
        if not cgroups.enter(path, main.pid):
            self._cgroups.remove(path)
            return None
        main.cgroup = path
        # What a process not yet moved forks stays outside with it: go on until none.
        inside: set[int] = set()
        while outside := {pid for pid, _ in self._members(main.id)} - inside:
            for pid in outside:
                cgroups.enter(path, pid)
            inside |= outside
            self._forest.look_away()
        return events.Enclosed(main.id, path)

    def truncate(self, effect: effects.Truncate) -> None:
        """Cut a file that became too long."""
        with suppress(OSError):
            os.truncate(effect.path, effect.size)

    def measure(self, effect: effects.Measure) -> events.Measured | None:
        """Look how much the attempt wrote."""
        written = self._written.get(effect.id)
        if written is None:
            return None
        return events.Measured(effect.id, sum(written.sizes()))

    def know(self, effect: effects.Know) -> None:
        """Take over what a predecessor knew."""
        main = self._forest.plant(effect.id, effect.pid, effect.ticks, adopted=True)
        main.alive = False
        main.cgroup = effect.cgroup
        self._note_files(effect.id, effect.files)

    def adopt(self, effect: effects.Adopt) -> events.Event:
        """Watch a process that was another keeper's child."""
        try:
            descriptor = pidfd.open_checked(effect.pid, effect.ticks)
        except OSError:
            return events.AdoptedUnclear(effect.id, False, utc_us())
        if descriptor is None:
            return events.Missing(effect.id, utc_us())
        main = self._forest.mains[effect.id]
        main.pid, main.ticks, main.alive = effect.pid, effect.ticks, True
        self._adopted[effect.id] = descriptor
        self._watch(descriptor, lambda: self._feed(self._ask(effect.id)))
        return events.Adopted(effect.id, effect.pid, effect.ticks, utc_us())

    def search(self, effect: effects.Search) -> events.Event:
        """Find a process whose start was recorded but not its pid."""
        carriers = [s for s in all_stats().values() if marker_of(s.pid) == effect.id]
        if not carriers:
            return events.Missing(effect.id, utc_us())
        carriers.sort(key=lambda stat: (stat.session != stat.pid, stat.ticks))
        return self.adopt(effects.Adopt(effect.id, carriers[0].pid, carriers[0].ticks))

    def inspect(self, effect: effects.Inspect) -> events.Event:
        """Ask again about a process that was unclear."""
        if effect.id in self._adopted:
            return self._ask(effect.id)
        main = self._forest.mains[effect.id]
        if not main.pid:
            return self.search(effects.Search(effect.id))
        return self.adopt(effects.Adopt(effect.id, main.pid, main.ticks))

    def _ask(self, id: str) -> events.Event:
        descriptor = self._adopted[id]
        self._unwatch(descriptor)
        try:
            status = pidfd.exit_status(descriptor)
        except pidfd.NotReaped:
            # The kernel hangs up when its parent collects it, be that soon or late.
            self._watch_for_end(descriptor, lambda: self._feed(self._ask(id)))
            return events.AdoptedUnclear(id, True, utc_us())
        self._forest.mains[id].alive = False
        os.close(self._adopted.pop(id))
        return events.AdoptedEnded(id, status, utc_us())

    def release(self, effect: effects.Release) -> None:
        """Drop all that is held for an attempt."""
        main = self._forest.mains.get(effect.id)
        if main is not None and main.cgroup is not None:
            self._cgroups.remove(main.cgroup)
        self._forest.fell(effect.id)
        self._written.pop(effect.id, None)
        if effect.id in self._adopted:
            descriptor = self._adopted.pop(effect.id)
            self._unwatch(descriptor)
            os.close(descriptor)

    def leave(self) -> None:
        """Remove what the keeper made for its jobs."""
        self._cgroups.leave()


def utc_us() -> int:
    """Return the present time in microseconds UTC."""
    return time.time_ns() // 1000
