"""Simulated processes: the counterpart of `grass.keeper.system.processes`.

It decides nothing. Each action answers with the event that tells the core what came of
it, and those that take time post theirs later.
"""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.protocol import SpawningEntry, StartVerb
from grass.model.ids import attempt_id
from tests.simulation.job_plans import MIXED, Plan, lacks, plan_of
from tests.simulation.processes import (
    NO_PROCESS,
    NO_START,
    SIGKILL,
    Process,
    Processes,
    RunnerLine,
)
from tests.simulation.world import MILLISECOND, Host

SIGPIPE = 13
REPORT_US = 100
FAILED_FORKS = 0.002


class Keeper(Protocol):
    """Whose children these are."""

    alive: bool

    def post(self, event: events.KeeperEvent) -> None:
        """Tell the core in the next turn."""

    def take_answer(self, pid: int) -> events.Answered | None:
        """Take what a runner has answered and the core was not told."""

    def child_died(self, process: Process) -> None:
        """Note that a child can be reaped."""


class KeeperJobs:
    """The processes that one keeper started or adopted."""

    def __init__(self, host: Host, processes: Processes, keeper: Keeper) -> None:
        self.zombies: list[Process] = []
        self._host = host
        self._processes = processes
        self._keeper = keeper
        self._careful: dict[int, events.KeeperEvent | None] = {}
        """Children of careful starts, and what they reported that was not heard."""
        self._adopted: dict[str, Process] = {}
        self._known: dict[str, tuple[int, int]] = {}
        self._guests: dict[str, tuple[int, int]] = {}
        self._lines: dict[int, RunnerLine] = {}
        """The lines to runners that are open, by pid."""

    def actions(self) -> dict[type, Callable[[Any], events.KeeperEvent | None]]:
        """Give who carries out which effect."""
        return {
            effects.Probe: self._probe,
            effects.SignalProcesses: self._signal_tree,
            effects.SignalHandlers: self._signal_handlers,
            effects.KillProcesses: self._kill_tree,
            effects.Survey: self._survey,
            effects.HangUp: lambda effect: self._hang_up(effect.pid),
            effects.Enclose: lambda effect: None,
            effects.NameOutput: lambda effect: None,
            effects.Measure: lambda effect: events.OutputMeasured(effect.id, 0),
            effects.Truncate: lambda effect: None,
            effects.Adopt: lambda effect: self._adopt(
                effect.id, effect.pid, effect.ticks
            ),
            effects.Search: self._search,
            effects.Inspect: self._inspect,
            effects.Know: self._know,
            effects.ReleaseAttempt: self._release,
            effects.EndGuest: lambda effect: events.GivenBack(
                effect.id, effect.code, self._host.wall_us
            ),
        }

    # Starting.

    def spawn(self, start: StartVerb) -> events.KeeperEvent:
        """Start a program, the careful way where its plan says so."""
        if start.guest is not None:
            return self._begin(start, start.guest)
        plan = self._plan(start)
        if self._fork_fails():
            return events.CannotSpawn(start, NO_PROCESS, self._host.wall_us)
        if plan.careful_us is not None:
            return self._fork(start, plan)
        if plan.cannot_start is not None:
            return self._failed(start, plan)
        process = self._forked(start)
        self._processes.run_program(process, plan)
        return self._spawned(process)

    def _plan(self, start: StartVerb) -> Plan:
        who, pace = attempt_id(start.id), start.env.get("PACE", MIXED)
        plan = plan_of(self._host.seed, who.job, who.number, pace)
        if start.task is None and lacks(self._host.seed, self._host.name, start.cwd):
            why = f"could not start: no folder {start.cwd}"
            return plan._replace(cannot_start=why, is_missing=True)
        return plan

    def _failed(self, start: StartVerb, plan: Plan) -> events.SpawnFailed:
        missing = start.cwd if plan.is_missing and start.may_return else ""
        why = plan.cannot_start or ""
        return events.SpawnFailed(start.id, why, self._host.wall_us, missing)

    def _forked(self, start: StartVerb) -> Process:
        """Fork a child; that of a task is a runner."""
        process = self._processes.fork(start, self._keeper)
        if start.task is not None:
            process.line = RunnerLine(process, self._answered)
            self._lines[process.pid] = process.line
        return process

    def hand_over(self, start: StartVerb, pid: int) -> events.KeeperEvent:
        """Hand a task to an idle runner, or to a new one if that is gone."""
        plan, line = self._plan(start), self._lines.get(pid)
        if line is None or not line.process.alive:
            return self.spawn(start)
        if plan.careful_us is not None:
            # Its output may not be opened by the keeper.
            self._hang_up(pid)
            return self.spawn(start)
        if plan.cannot_start is not None:
            return self._failed(start, plan)
        process = self._processes.hand(line.process, start)
        self._processes.run_program(process, plan)
        return self._spawned(process)

    def _answered(self, pid: int, status: int) -> None:
        if self._keeper.alive:
            event = events.Answered(pid, status, None, self._host.wall_us)
            self._keeper.post(event)

    def _hang_up(self, pid: int) -> events.Answered | None:
        """End a line; an answer that waits on it is read before."""
        line = self._lines.pop(pid, None)
        if line is None:
            return None
        self._processes.hang_up(line)
        return self._keeper.take_answer(pid)

    def hang_up_all(self) -> None:
        """End every line: the keeper is gone."""
        for pid in list(self._lines):
            self._hang_up(pid)

    def _begin(self, start: StartVerb, pid: int) -> events.KeeperEvent:
        """Watch the process of a guest."""
        self._known[start.id] = self._guests[start.id] = (pid, start.guest_ticks)
        return self._adopt(start.id, pid, start.guest_ticks)

    def recorded(self, entry: SpawningEntry) -> None:
        """Note which attempt the process of a guest has, also if this keeper dies."""
        process = self._processes.find(entry.guest or 0, entry.guest_ticks)
        if process is not None and process.guest:
            process.attempt = entry.id
            process.start = NO_START._replace(id=entry.id, meta=entry.meta)

    def _fork_fails(self) -> bool:
        return self._processes.full or self._host.chance(FAILED_FORKS)

    def _probe(self, effect: effects.Probe) -> events.Probed:
        return events.Probed(NO_PROCESS if self._fork_fails() else None, None)

    def _spawned(self, process: Process) -> events.Spawned:
        now = self._host.wall_us
        return events.Spawned(process.attempt, process.pid, process.ticks, now, 0, 0)

    def _fork(self, start: StartVerb, plan: Plan) -> events.Forked:
        process = self._forked(start)
        self._careful[process.pid] = None
        self._host.after(
            plan.careful_us or 0,
            f"execs {start.id}",
            lambda: self._exec(process, plan),
            process,
        )
        return events.Forked(start.id, process.pid, process.ticks)

    def _exec(self, process: Process, plan: Plan) -> None:
        if process.stopped:
            again = lambda: self._exec(process, plan)  # noqa: E731
            self._host.after(10 * MILLISECOND, "execs later", again, process)
        elif not self._keeper.alive:
            # The pipe on which it reports before it runs the program has no reader.
            self._processes.die(process, SIGPIPE)
        elif self._host.chance(FAILED_FORKS):
            # Its output cannot be made: it reports that, and ends.
            start, now = process.start, self._host.wall_us
            self._careful[process.pid] = events.CannotSpawn(start, NO_PROCESS, now)
            self._processes.die(process, 127 << 8)
        elif plan.cannot_start is not None:
            self._careful[process.pid] = self._failed(process.start, plan)
            self._processes.die(process, 127 << 8)
        else:
            self._processes.run_program(process, plan)
            self._careful[process.pid] = self._spawned(process)
            self._host.after(
                REPORT_US, "reports", lambda: self._hear(process.pid), self._keeper
            )

    def _hear(self, pid: int) -> None:
        event = self._careful.pop(pid, None)
        if event is not None:
            self._keeper.post(event)

    def reaped(self) -> Iterator[events.KeeperEvent]:
        """Collect every child that has ended."""
        zombies, self.zombies = self.zombies, []
        for process in zombies:
            report = self._careful.pop(process.pid, None)
            if report is not None:
                yield report
            self._processes.reap(process)
            if process.line is not None and process.line.process is process:
                self._lines.pop(process.pid, None)
            assert process.status is not None
            now = self._host.wall_us
            yield events.ChildEnded(process.pid, process.status, None, now)

    # Signals and looks.

    def _signal_tree(self, effect: effects.SignalProcesses) -> None:
        for process in self._members(effect.id):
            for number in effect.signals:
                self._processes.signal(process, number)

    def _signal_handlers(self, effect: effects.SignalHandlers) -> None:
        self._signal_tree(effects.SignalProcesses(effect.id, (effect.signal,)))

    def _kill_tree(self, effect: effects.KillProcesses) -> None:
        for process in self._members(effect.id):
            self._processes.signal(process, SIGKILL)

    def _members(self, id: str) -> list[Process]:
        if id not in self._guests:
            return self._processes.tree(id)
        guest = self._processes.find(*self._guests[id])
        return [] if guest is None else [guest]

    def _survey(self, effect: effects.Survey) -> events.Surveyed:
        left = [] if effect.id in self._guests else self._processes.tree(effect.id)
        left = [one for one in left if not self._is_kept(one)]
        return events.Surveyed(effect.id, not left, 0)

    def _is_kept(self, process: Process) -> bool:
        return process.idle and process.pid in self._lines

    # Taking over from a dead keeper.

    def _know(self, effect: effects.Know) -> None:
        self._known[effect.id] = (effect.pid, effect.ticks)
        if effect.guest:
            self._guests[effect.id] = (effect.pid, effect.ticks)

    def _adopt(self, id: str, pid: int, ticks: int) -> events.KeeperEvent:
        process = self._processes.find(pid, ticks)
        now = self._host.wall_us
        if process is None or not process.alive:
            return events.Missing(id, now)
        if self._host.chance(0.05):
            # No descriptor left: it lives, but cannot be watched yet.
            return events.AdoptedUnclear(id, False, now)
        self._adopted[id] = process
        if process.guest:
            self._processes.begin_guest(process)
        process.watchers.append(lambda: self._ended(id, process))
        return events.Adopted(id, pid, ticks, now)

    def _search(self, effect: effects.Search) -> events.KeeperEvent:
        for process in self._processes.tree(effect.id):
            if process.runs:
                return self._adopt(effect.id, process.pid, process.ticks)
        return events.Missing(effect.id, self._host.wall_us)

    def _inspect(self, effect: effects.Inspect) -> events.KeeperEvent:
        process = self._adopted.get(effect.id)
        if process is not None:
            return self._status(effect.id, process)
        return self._adopt(effect.id, *self._known[effect.id])

    def _ended(self, id: str, process: Process) -> None:
        if self._keeper.alive and self._adopted.get(id) is process:
            if self._host.chance(0.2):
                now = self._host.wall_us
                self._keeper.post(events.AdoptedUnclear(id, True, now))
            else:
                self._keeper.post(self._status(id, process))

    def _status(self, id: str, process: Process) -> events.AdoptedEnded:
        self._adopted.pop(id, None)
        status = self._processes.exit_status(process)
        return events.AdoptedEnded(id, status, self._host.wall_us)

    def _release(self, effect: effects.ReleaseAttempt) -> None:
        self._adopted.pop(effect.id, None)
        self._known.pop(effect.id, None)
        self._guests.pop(effect.id, None)
        for process in self._processes.tree(effect.id):
            if self._is_kept(process):
                self._processes.rest(process)
