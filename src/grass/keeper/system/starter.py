"""Starting attempts: directly, or by a forked child where a disk may hang.

A forked child is watched through the pipe it reports to. It is also used for a job with
a priority or cores of its own, which must be set between fork and exec.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.process_table import boot_ticks, start_ticks
from grass.keeper.start_errors import (
    CannotStart,
    CannotStartNow,
    MissingHere,
    cause,
    is_of_machine,
)
from grass.keeper.system.poller import utc_us
from grass.keeper.system.runner_lines import (
    RunnerLine,
    RunnerLines,
    close_theirs,
    number_of,
)
from grass.keeper.system.spawn import (
    Outputs,
    Spawner,
    WouldBlock,
    close,
    read_report,
    report_pipe,
    search_path,
)
from grass.keeper.system.unnamed_outputs import UnnamedOutputs

if TYPE_CHECKING:
    from grass.keeper.mounts import Mounts
    from grass.keeper.process_table import ProcessTable
    from grass.keeper.protocol import StartVerb
    from grass.keeper.system.poller import Feed, Poller
    from grass.keeper.system.rlimits import OpenFiles


class ForkedStart:
    """A forked child that prepares a start, and what it has reported so far."""

    __slots__ = ("pid", "reader", "received", "start")

    def __init__(self, start: StartVerb, reader: int) -> None:
        self.start = start
        self.pid = 0
        self.reader = reader
        self.received = bytearray()


class Starter:
    """Starts the processes of attempts."""

    def __init__(
        self,
        mounts: Mounts,
        files: OpenFiles,
        table: ProcessTable,
        runners: RunnerLines,
    ) -> None:
        """Begin; `connect` must follow."""
        self._mounts = mounts
        self._runners = runners
        self._spawner = Spawner(files)
        self._table = table
        self._forked: dict[int, ForkedStart] = {}
        self.unnamed = UnnamedOutputs()
        self.sizes = OutputSizes(mounts, self.unnamed)

    def connect(self, poller: Poller, feed: Feed) -> None:
        """Set how to wait for a descriptor and where later events go."""
        self._poller = poller
        self._feed = feed

    def spawn(self, start: StartVerb, *, forked: bool = False) -> events.KeeperEvent:
        """Start the program, by a forked child where the direct way might hang.

        If this raises, no process was started.
        """
        line: RunnerLine | None = None
        try:
            if start.task is not None:
                line = self._runners.new()
            event = self._started(start, line, forked=forked)
        except BaseException as error:
            if line is not None:
                self._runners.drop(line)
            if isinstance(error, WouldBlock):
                return self.spawn(start, forked=True)
            if isinstance(error, (CannotStart, CannotStartNow, OSError)):
                return _not_spawned(start, error)
            raise
        finally:
            close_theirs(line)
        if line is not None:
            self._runners.started(line, start, event.pid, event.ticks)
        return event

    def hand_over(self, start: StartVerb, runner: int) -> events.KeeperEvent:
        """Send a task to an idle runner; start another where that is not possible."""
        try:
            if self._writes_elsewhere(start):
                raise WouldBlock
            unnamed = self.unnamed.take(start, runner)
            outputs = unnamed or self._spawner.open_outputs(start)
        except WouldBlock:
            self._runners.hang_up(effects.HangUp(runner))
            return self.spawn(start, forked=True)
        except (CannotStart, CannotStartNow, OSError) as error:
            return _not_spawned(start, error)
        try:
            both = [outputs.stdout, outputs.stderr]
            line = self._runners.hand(runner, start, both)
        finally:
            if unnamed is None:
                close(outputs)
        if line is None:
            self.unnamed.ended(start.id, self.unnamed.written(start.id))
            return self.spawn(start)
        main = self._table.add(start.id, runner, line.ticks, adopted=False)
        main.cgroup = line.cgroup
        return self._spawned(start, runner, outputs)._replace(cgroup=line.cgroup)

    def _started(
        self, start: StartVerb, line: RunnerLine | None, *, forked: bool
    ) -> events.Forked | events.Spawned:
        if forked or self._needs_fork(start):
            return self._fork(start, number_of(line))
        began = boot_ticks()
        pid, outputs = self._spawner.spawn(start, number_of(line))
        # A process that began within one tick began at that tick: reading /proc for
        # it would cost a third as much as the spawn itself.
        ticks = began if boot_ticks() == began else _ticks_of_child(pid, began)
        self._table.add(start.id, pid, ticks, adopted=False)
        return self._spawned(start, pid, outputs)

    def _needs_fork(self, start: StartVerb) -> bool:
        if start.nice or start.cpus is not None:
            return True
        return self._mounts.has_network() and self._touches_network(start)

    def _touches_network(self, start: StartVerb) -> bool:
        paths = [start.cwd, start.output, start.stderr or "/", start.argv[0]]
        paths.append(start.script or "/")
        paths.extend(search_path(start))
        return self._mounts.touches_network(
            [os.path.join(start.cwd, path) for path in paths]
        )

    def _writes_elsewhere(self, start: StartVerb) -> bool:
        """Tell whether the output must not be opened here, in the keeper."""
        paths = [start.output, start.stderr or "/"]
        if not all(path.startswith("/") for path in paths):
            return True
        return self._mounts.has_network() and self._mounts.touches_network(paths)

    def _spawned(self, start: StartVerb, pid: int, outputs: Outputs) -> events.Spawned:
        files = [(os.path.join(start.cwd, start.output), outputs.offset)]
        if start.stderr is not None and start.stderr != start.output:
            path = os.path.join(start.cwd, start.stderr)
            files.append((path, outputs.stderr_offset))
        self.sizes.add(start.id, files)
        ticks = self._table.mains[start.id].ticks
        offsets = outputs.offset, outputs.stderr_offset
        return events.Spawned(start.id, pid, ticks, utc_us(), *offsets)

    def _fork(self, start: StartVerb, line: int | None) -> events.Forked:
        reader, writer = report_pipe()
        child = ForkedStart(start, reader)
        try:
            # Before the fork, as it may fail.
            self._poller.watch(reader, lambda: self._read_report(child))
            began = boot_ticks()
            child.pid = pid = self._spawner.fork(start, writer, line)
        except OSError:
            self._poller.unwatch(reader)
            os.close(reader)
            raise
        finally:
            os.close(writer)
        ticks = _ticks_of_child(pid, began)
        self._table.add(start.id, pid, ticks, adopted=False)
        self._forked[pid] = child
        return events.Forked(start.id, pid, ticks)

    def child_ended(self, pid: int) -> None:
        """Read what a forked child reported before it ended, or a runner answered."""
        if pid in self._forked:
            self._read_report(self._forked[pid])

    def _read_report(self, child: ForkedStart) -> None:
        report = read_report(child.reader, child.received)
        if report is None:
            return
        self._poller.unwatch(child.reader)
        os.close(child.reader)
        del self._forked[child.pid]
        start = child.start
        if report.shortage is not None:
            why, folder = report.shortage, report.folder
            self._feed(events.CannotSpawn(start, why, utc_us(), folder))
        elif report.error is not None:
            missing = report.missing if start.may_return else ""
            failed = events.SpawnFailed(start.id, report.error, utc_us(), missing)
            self._feed(failed)
        elif child.received:
            outputs = Outputs(-1, -1, report.offset, report.stderr_offset)
            self._feed(self._spawned(start, child.pid, outputs))

    def probe(self, effect: effects.Probe) -> events.Probed:
        """Try whether a program could be started now."""
        failing: str | None = None
        try:
            _probe_process()
            failing = effect.folder
            if failing is not None:
                _probe_folder(failing)
        except OSError as error:
            return events.Probed(cause(error), failing)
        return events.Probed(None, None)


class OutputSizes:
    """Where attempts write, and how long the files were before they did."""

    def __init__(self, mounts: Mounts, unnamed: UnnamedOutputs) -> None:
        self._mounts = mounts
        self._unnamed = unnamed
        self._files: dict[str, list[tuple[str, int]]] = {}

    def add(self, id: str, files: list[tuple[str, int]]) -> None:
        """Note an attempt's files and their sizes before it wrote."""
        if self._unnamed.has(id):
            # It was looked at where it is before it was opened.
            self._files[id] = files
            return
        try:
            local = not self._mounts.touches_network([path for path, _ in files])
        except (OSError, ValueError):
            local = False
        self._files[id] = files if local else []

    def written(self, id: str) -> list[int] | None:
        """Return how much was written to each; on a disk that may hang, 0."""
        files = self._files.get(id)
        if files is None:
            return None
        unnamed = self._unnamed.written(id)
        if unnamed is not None:
            return [unnamed]
        return [_size(path) - offset for path, offset in files] or [0]

    def remove(self, id: str) -> None:
        """Drop an attempt."""
        self._files.pop(id, None)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _not_spawned(
    start: StartVerb, error: CannotStart | CannotStartNow | OSError
) -> events.KeeperEvent:
    """Tell whether the job or the machine is why nothing was started."""
    if isinstance(error, OSError) and is_of_machine(error):
        error = CannotStartNow(error)
    if isinstance(error, CannotStartNow):
        return events.CannotSpawn(start, str(error), utc_us(), error.folder)
    if isinstance(error, OSError):
        error = CannotStart(f"could not start: {cause(error)}")
    missing = error.path if isinstance(error, MissingHere) else ""
    missing = missing if start.may_return else ""
    return events.SpawnFailed(start.id, str(error), utc_us(), missing)


def _ticks_of_child(pid: int, began: int) -> int:
    """Return when a child started; it was not reaped yet, so it exists."""
    try:
        return start_ticks(pid) or began
    except OSError:
        return began


def _probe_process() -> None:
    """Create a pipe and a process; raises OSError if that is not possible."""
    ends = os.pipe()
    try:
        if os.fork() == 0:
            os._exit(0)
    finally:
        for end in ends:
            os.close(end)


def _probe_folder(folder: str) -> None:
    """Create and delete a file in a folder; raises OSError if that is not possible."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, ".probe")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.write(descriptor, bytes(4096))
    finally:
        os.close(descriptor)
        os.unlink(path)
    with suppress(OSError):
        os.rmdir(folder)
