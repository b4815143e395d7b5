"""The processes of a machine, and what its kernel knows of them.

They live on when their keeper or the daemon dies; only a power cut or a reboot ends
them all. Each start and end is reported to a witness, which is the truth against which
everything else is checked.
"""

from collections.abc import Callable
from typing import Protocol

from grass.keeper.protocol import StartVerb
from grass.model.resources import Allocation
from tests.simulation.job_plans import DIES, IGNORES, LEAVES, Plan
from tests.simulation.world import MILLISECOND, Host, Violation

SIGKILL, SIGUSR1, SIGTERM, SIGCONT, SIGSTOP = 9, 10, 15, 18, 19
TICK_US = 10_000
FIRST_PID, LAST_PID = 300, 700
"""So few that pids are reused."""
NO_PROCESS, DISK_FULL = "no more processes are allowed", "no space left on device"
"""Why a machine cannot start any process."""
CLEAN_UP_US = 3 * MILLISECOND
LONGEST_LEAVE_US = 1_000 * MILLISECOND
"""How long a runner may take to see that its line has ended."""
NO_START = StartVerb("", [], {}, "/", 0o022, "")
"""That of a process which no keeper knows."""


class Parent(Protocol):
    """A keeper, which is notified when a child can be reaped."""

    alive: bool

    def child_died(self, process: "Process") -> None:
        """Record it; the child is reaped later."""


class Witness(Protocol):
    """Gets every start and end, and what is given back between them."""

    def started(self, process: "Process") -> None:
        """A program runs."""

    def shrunk(self, name: str, allocation: Allocation) -> None:
        """An attempt keeps only a part of its units."""

    def ended(self, process: "Process") -> None:
        """A process is gone."""


class RunnerLine:
    """The line between a keeper and a runner."""

    def __init__(
        self, process: "Process", answered: Callable[[int, int], None]
    ) -> None:
        self.process = process
        """The runner: another object for each attempt, and while it is idle."""
        self.is_open = True
        self.answered = answered
        """Called with its pid and the status of its task."""


class Process:
    """One process: a job's main one, or a child of that.

    A runner is one object for each attempt, and one while it is idle, of one pid.
    """

    def __init__(
        self, host: Host, pid: int, ticks: int, start: StartVerb, parent: Parent | None
    ) -> None:
        self.host = host
        self.pid = pid
        self.ticks = ticks
        self.attempt = start.id
        self.start = start
        self.parent = parent
        self.main: Process | None = None
        """The main process of its job; None: it is the main process."""
        self.runs = False
        self.alive = True
        self.reaped = False
        self.status: int | None = None
        self.on_term = DIES
        self.children: list[Process] = []
        self.watchers: list[Callable[[], None]] = []
        self.stopped = False
        self.pending: list[int] = []
        self.ends_at: int | None = None
        self.plans = 0
        """How often its end was planned; only the last plan is valid."""
        self.left_us = 0
        self.end_status = 0
        self.guest = False
        """Whether it was there before its attempt, and goes on after it."""
        self.gave_back: int | None = None
        """The status with which a guest was done with its attempt."""
        self.line: RunnerLine | None = None
        self.idle = False
        """Whether it is a runner without an attempt."""


class Processes:
    """All processes of one machine."""

    def __init__(self, host: Host, witness: Witness, tells_exits: bool) -> None:
        self.tells_exits = tells_exits
        self.output: set[str] = set()
        """Files that jobs wrote."""
        self.full = False
        """Whether forks fail."""
        self._host = host
        self._witness = witness
        self._by_pid: dict[int, Process] = {}
        self._trees: dict[str, list[Process]] = {}
        self._next_pid = FIRST_PID
        self._begun: set[str] = set()
        """Attempts of guests that have begun."""

    # Starts.

    def fork(self, start: StartVerb, parent: Parent) -> Process:
        """Fork a child that does not run its program yet."""
        process = self._new(start, parent)
        self._trees.setdefault(start.id, []).append(process)
        self.output.add(start.output)
        return process

    def _new(self, start: StartVerb, parent: Parent | None) -> Process:
        while self._next_pid in self._by_pid:
            self._count_pid()
        pid = self._next_pid
        self._count_pid()
        ticks = self._host.boot_us // TICK_US
        process = Process(self._host, pid, ticks, start, parent)
        self._by_pid[pid] = process
        return process

    def shrunk(self, name: str, allocation: Allocation) -> None:
        """Have it recorded that an attempt keeps only a part of its units."""
        self._witness.shrunk(name, allocation)

    # Guests.

    def new_guest(self, on_term: str) -> Process:
        """Start a process that is to become a guest."""
        process = self._new(NO_START, None)
        process.guest, process.on_term = True, on_term
        return process

    def begin_guest(self, process: Process) -> None:
        """Begin the attempt of a guest, unless that has happened."""
        if process.runs or process.attempt in self._begun:
            return
        self._begun.add(process.attempt)
        process.runs = True
        self._witness.started(process)
        if process.gave_back is not None:
            self._finish_guest(process, process.gave_back)

    def give_back(self, process: Process, status: int) -> None:
        """Have a guest be done with its attempt, or with its wait."""
        process.gave_back = status
        if process.runs:
            self._finish_guest(process, status)

    def _finish_guest(self, process: Process, status: int) -> None:
        process.status = status
        self._witness.ended(process)
        process.runs = False

    def end_within(self, process: Process, delay_us: int) -> None:
        """End a process that is there so long still."""
        process.left_us = delay_us
        self._go(process)

    def _count_pid(self) -> None:
        self._next_pid = FIRST_PID + (self._next_pid + 1 - FIRST_PID) % (
            LAST_PID - FIRST_PID
        )

    # Runners.

    def hand(self, idle: Process, start: StartVerb) -> Process:
        """Hand an attempt to a runner, which has to be idle."""
        line = idle.line
        if not (idle.idle and idle.alive) or line is None or not line.is_open:
            raise Violation(f"{start.id} is handed to a runner that is not idle")
        process = Process(self._host, idle.pid, idle.ticks, start, idle.parent)
        self._follow(idle, process)
        self._trees.setdefault(start.id, []).append(process)
        self.output.add(start.output)
        return process

    def _follow(self, before: Process, after: Process) -> None:
        """Let one object stand for a runner from now on."""
        before.alive = False
        after.line = before.line
        assert after.line is not None
        after.line.process = self._by_pid[after.pid] = after

    def _may_answer(self, process: Process) -> bool:
        """Tell whether a runner whose task is done waits for the next."""
        line, status = process.line, process.end_status
        by_signal = 0 < status < 256
        # Some of its children are orphans, of which it does not know.
        known = any(one.alive and one.pid % 2 for one in process.children)
        return line is not None and line.is_open and not (by_signal or known)

    def _answer(self, process: Process) -> None:
        process.status = process.end_status
        self._witness.ended(process)
        for child in process.children:
            child.parent = process.parent
        parts = self._host, process.pid, process.ticks, process.start, process.parent
        idle = Process(*parts)
        idle.idle, idle.end_status = True, process.status
        self._follow(process, idle)
        tree = self._trees[process.attempt]
        tree[tree.index(process)] = idle
        assert idle.line is not None
        idle.line.answered(idle.pid, process.status)

    def rest(self, idle: Process) -> None:
        """Note that the attempt of a runner is over."""
        self._trees[idle.attempt].remove(idle)
        idle.attempt = ""

    def hang_up(self, line: RunnerLine) -> None:
        """End a line; a runner that is idle leaves, with the code of its last task."""
        line.is_open = False
        runner = line.process
        if runner.idle:
            delay = self._host.between(0, LONGEST_LEAVE_US)
            leave = lambda: self.die(runner, runner.end_status)  # noqa: E731
            self._host.after(delay, f"leaves {runner.pid}", leave, runner)

    def idle_runners(self) -> list[Process]:
        """Return the runners that wait for an attempt."""
        found = self._by_pid.values()
        return [one for one in found if one.idle and one.alive and not one.attempt]

    def run_program(self, process: Process, plan: Plan) -> None:
        """Run a child's program, which forks its own children."""
        process.runs = True
        process.on_term = plan.on_term
        process.end_status = plan.status
        process.left_us = plan.run_us
        for child in plan.children:
            made = self.fork(process.start, _NO_PARENT)
            made.parent, made.main, made.runs = None, process, True
            made.on_term = child.on_term
            made.left_us = plan.run_us + child.outlives_us
            process.children.append(made)
            self._go(made)
        self._witness.started(process)
        self._go(process)

    def _go(self, process: Process) -> None:
        if process.stopped:
            return
        label = f"ends {process.attempt} {process.pid}"
        process.plans += 1
        plan, process.ends_at = process.plans, self._host.now + process.left_us
        self._host.after(
            process.left_us, label, lambda: self._end(process, plan), process
        )

    # Signals.

    def signal(self, process: Process, number: int) -> None:
        """Send a signal."""
        if not process.alive:
            return
        if number == SIGKILL:
            self.die(process, SIGKILL)
        elif number == SIGSTOP:
            self._stop(process)
        elif number == SIGCONT:
            self._continue(process)
        elif process.stopped:
            process.pending.append(number)
        else:
            self._ask_to_end(process, number)

    def _ask_to_end(self, process: Process, number: int) -> None:
        if number == SIGUSR1 and process.on_term != DIES:
            return  # It handles that, and goes on.
        if process.on_term == DIES or not process.runs:
            self.die(process, number)
        elif process.on_term == LEAVES:
            # It cleans up and exits with a code of its own.
            process.on_term, process.end_status = IGNORES, 143 << 8
            process.left_us = CLEAN_UP_US
            self._go(process)

    def _stop(self, process: Process) -> None:
        if not process.stopped:
            process.stopped = True
            if process.ends_at is not None:
                process.left_us = process.ends_at - self._host.now
                process.plans += 1

    def _continue(self, process: Process) -> None:
        if process.stopped:
            process.stopped = False
            pending, process.pending = process.pending, []
            if process.runs or process.ends_at is not None:
                self._go(process)
            for number in pending:
                self.signal(process, number)

    # Ends.

    def _end(self, process: Process, plan: int) -> None:
        if plan != process.plans:
            return
        if self._may_answer(process):
            self._answer(process)
        else:
            self.die(process, process.end_status)

    def die(self, process: Process, status: int) -> None:
        """End a process; its children are orphans now."""
        process.alive = False
        if process.gave_back is None:
            process.status = status
            self._witness.ended(process)
        for child in process.children:
            child.parent = process.parent
        if process.parent is not None and process.parent.alive:
            process.parent.child_died(process)
        else:
            self.reap(process)
        for notify in process.watchers:
            notify()

    def reap(self, process: Process) -> None:
        """Remove a dead process from the table; its pid may be reused."""
        process.reaped = True
        if self._by_pid.get(process.pid) is process:
            del self._by_pid[process.pid]
        tree = self._trees.get(process.attempt)
        if tree is not None and process in tree:
            tree.remove(process)
            if not tree:
                del self._trees[process.attempt]

    def orphan(self, parent: Parent) -> None:
        """Give a dead keeper's children to init, which reaps at once."""
        for process in list(self._by_pid.values()):
            if process.parent is parent:
                process.parent = None
                if not process.alive:
                    self.reap(process)

    def kill_all(self) -> None:
        """End everything at once: the machine goes down."""
        for process in list(self._by_pid.values()):
            if process.alive and process.gave_back is None:
                process.status = SIGKILL
                self._witness.ended(process)
            process.alive = False
            self.reap(process)

    # Questions.

    def find(self, pid: int, ticks: int) -> Process | None:
        """Find the process that began then, dead but unreaped ones included."""
        process = self._by_pid.get(pid)
        return process if process is not None and process.ticks == ticks else None

    def tree(self, attempt: str) -> list[Process]:
        """Return the live processes of an attempt, in the order of their starts."""
        return [one for one in self._trees.get(attempt, ()) if one.alive]

    def living(self) -> list[Process]:
        """Return every live process, but for runners without an attempt."""
        return [one for one in self._by_pid.values() if one.alive and not one.idle]

    def exit_status(self, process: Process) -> int | None:
        """Return what the pidfd of a reaped process tells."""
        return process.status if self.tells_exits and process.reaped else None


class _NoParent:
    alive = False

    def child_died(self, process: Process) -> None:
        """Never called: orphans are reaped at once."""


_NO_PARENT = _NoParent()
