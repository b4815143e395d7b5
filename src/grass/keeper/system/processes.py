"""The real processes of attempts: carries out what the core wants done to them.

Each method answers with the event that tells the core what came of it. With
`adopting` this is the only place that signals, reaps or watches processes; it decides
nothing. Without the means to look at processes, as when there are no descriptors left,
a tree counts as not empty, and what is to be done to it is tried again by the core.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from grass.keeper.core import effects, events
from grass.keeper.system import cgroups, pidfd
from grass.keeper.system.adoption import Adopting
from grass.keeper.system.clocks import utc_us
from grass.keeper.system.process_tree import Forest, boot_ticks, start_ticks
from grass.keeper.system.shortage import (
    CannotStartNow,
    cause,
    is_of_machine,
    probe_folder,
    probe_process,
)
from grass.keeper.system.spawn import (
    CannotStart,
    Outputs,
    Spawner,
    WouldBlock,
    read_reports,
    report_pipe,
    search_path,
)
from grass.keeper.system.usage import Written, peak_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from grass.keeper.system.adoption import Feed
    from grass.keeper.system.mounts import Mounts
    from grass.keeper.system.poller import Waiting
    from grass.keeper.system.rlimits import OpenFiles


class Careful:
    """A careful start under way: what its child has reported so far."""

    __slots__ = ("pid", "reader", "report", "spec")

    def __init__(self, spec: events.Spec, reader: int) -> None:
        self.spec = spec
        self.pid = 0
        self.reader = reader
        self.report: dict[str, object] = {}


class Jobs:
    """Everything the keeper holds of running attempts."""

    def __init__(
        self, mounts: Mounts, own_cgroups: cgroups.Cgroups, files: OpenFiles
    ) -> None:
        """Begin with none; `connect` must follow."""
        self._mounts = mounts
        self._cgroups = own_cgroups
        self._spawner = Spawner(files)
        self._forest = Forest(os.getpid())
        self._written: dict[str, Written] = {}
        self._careful: dict[int, Careful] = {}
        self.adopting = Adopting(self._forest)

    def connect(self, waiting: Waiting, feed: Feed) -> None:
        """Say how to wait for a descriptor and whom to tell what came of it."""
        self._waiting = waiting
        self._feed = feed
        self.adopting.connect(waiting, feed)

    def spawn(self, spec: events.Spec, *, careful: bool = False) -> events.Event:
        """Start the program, the careful way where the fast one might hang.

        What raises has started nothing; from the spawn on nothing does.
        """
        try:
            if careful or self._needs_care(spec):
                return self._fork(spec)
            began = boot_ticks()
            pid, outputs = self._spawner.spawn(spec)
        except WouldBlock:
            return self.spawn(spec, careful=True)
        except (CannotStart, CannotStartNow, OSError) as error:
            return _not_spawned(spec, error)
        # A process that began within one tick began at that tick: reading /proc for
        # it would cost a third as much as the spawn itself.
        ticks = began if boot_ticks() == began else _ticks_of_child(pid, began)
        self._forest.plant(spec.id, pid, ticks, adopted=False)
        return self._spawned(spec, pid, outputs)

    def probe(self, effect: effects.Probe) -> events.Probed:
        """Look whether a program could be started now."""
        failing: str | None = None
        try:
            probe_process()
            failing = effect.folder
            if failing is not None:
                probe_folder(failing)
        except OSError as error:
            return events.Probed(cause(error), failing)
        return events.Probed(None, None)

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
        try:
            local = not self._mounts.touches_network([path for path, _ in files])
        except (OSError, ValueError):
            local = False
        self._written[id] = Written(files, local)

    def _fork(self, spec: events.Spec) -> events.Forked:
        reader, writer = report_pipe()
        careful = Careful(spec, reader)
        try:
            # Before the fork, as it may fail.
            self._waiting.watch(reader, lambda: self._heard(careful))
            began = boot_ticks()
            careful.pid = pid = self._spawner.fork(spec, writer)
        except OSError:
            self._waiting.unwatch(reader)
            os.close(reader)
            raise
        finally:
            os.close(writer)
        ticks = _ticks_of_child(pid, began)
        self._forest.plant(spec.id, pid, ticks, adopted=False)
        self._careful[pid] = careful
        return events.Forked(spec.id, pid, ticks)

    def _heard(self, careful: Careful) -> None:
        news, ended = read_reports(careful.reader)
        careful.report.update(news)
        if not ended:
            return
        self._waiting.unwatch(careful.reader)
        os.close(careful.reader)
        del self._careful[careful.pid]
        report = careful.report
        if "now" in report:
            why, where = str(report["now"]), report["folder"]
            folder = None if where is None else str(where)
            self._feed(events.CannotSpawn(careful.spec, why, utc_us(), folder))
        elif "error" in report:
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
        try:
            left = self._anything_left(effect.id)
        except OSError:
            left = True
        written = self._written.get(effect.id)
        size = written.sizes()[0] if written is not None and not left else 0
        return events.Surveyed(effect.id, not left, max(0, size))

    def _anything_left(self, id: str) -> bool:
        main = self._forest.mains.get(id)
        if self._forest.anything_left(id):
            return True
        return main is not None and bool(main.cgroup and cgroups.pids(main.cgroup))

    def signal_tree(self, effect: effects.SignalTree) -> None:
        """Send signals to every process of the attempt."""
        members: list[tuple[int, int]] = []
        with suppress(OSError):
            members = self._members(effect.id)
        for pid, ticks in members:
            with suppress(OSError):
                pidfd.send_signals(pid, ticks, effect.signals)

    def kill_tree(self, effect: effects.KillTree) -> None:
        """Kill every process of the attempt."""
        main = self._forest.mains.get(effect.id)
        if main is not None and main.cgroup is not None:
            cgroups.kill(main.cgroup)
        self.signal_tree(effects.SignalTree(effect.id, (signal.SIGKILL,)))

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
        with suppress(OSError):
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
        with suppress(OSError):
            self._move_all_into(path, main.id)
        return events.Enclosed(main.id, path)

    def _move_all_into(self, path: str, id: str) -> None:
        # What a process not yet moved forks stays outside with it: go on until none.
        inside: set[int] = set()
        while outside := {pid for pid, _ in self._members(id)} - inside:
            for pid in outside:
                cgroups.enter(path, pid)
            inside |= outside
            self._forest.look_away()

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

    def release(self, effect: effects.Release) -> None:
        """Drop all that is held for an attempt."""
        main = self._forest.mains.get(effect.id)
        if main is not None and main.cgroup is not None:
            self._cgroups.remove(main.cgroup)
        self._forest.fell(effect.id)
        self._written.pop(effect.id, None)
        self.adopting.release(effect.id)

    def leave(self) -> None:
        """Remove what the keeper made for its jobs."""
        self._cgroups.leave()


def _not_spawned(
    spec: events.Spec, error: CannotStart | CannotStartNow | OSError
) -> events.Event:
    """Tell whether the job or the machine is why nothing was started."""
    if isinstance(error, OSError) and is_of_machine(error):
        error = CannotStartNow(error)
    if isinstance(error, CannotStartNow):
        return events.CannotSpawn(spec, str(error), utc_us(), error.folder)
    if isinstance(error, OSError):
        error = CannotStart(f"could not start: {cause(error)}")
    return events.SpawnFailed(spec.id, str(error), utc_us())


def _ticks_of_child(pid: int, began: int) -> int:
    """Return when a child started; it was not collected yet, so it is there."""
    try:
        return start_ticks(pid) or began
    except OSError:
        return began
