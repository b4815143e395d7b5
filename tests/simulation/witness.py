"""The independent ledger: what really ran, as the processes themselves noted it.

It knows nothing of brokers, workers and keepers. At every start it checks what no
bookkeeping can excuse: an attempt runs once, a job has one attempt alive on all
machines together, and no unit is given to more processes than it has room for.

Two excuses there are. What a forgotten machine still runs is on the head of whoever
said that the machine is gone. And what stands still on a machine that sleeps may be
replaced once its lease is over, but then it must be ended before it does anything more.
"""

from grass.model.ids import attempt_id
from grass.model.resources import Allocation, Capacity
from tests.simulation.processes import SIGKILL, SIGTERM, Process
from tests.simulation.world import Host, Violation, World

CLEANED_UP = 143 << 8
"""How a program ends that cleans up when it is told to end."""


class Run:
    """One attempt as it really went."""

    def __init__(self, main: Process) -> None:
        self.main = main
        self.living = 1 + len(main.children)
        self.started_us = main.host.world.now
        self.lasted_us: int | None = None
        """How long its main process lived."""
        self.allocation: Allocation = main.spec.meta["allocation"]
        self.forgiven = False
        """Whether somebody said that its machine is gone for good."""
        self.doomed = False
        """Whether it was given up while its machine slept."""

    @property
    def over(self) -> bool:
        """Whether nothing of it lives."""
        return self.living == 0

    @property
    def was_stopped(self) -> bool:
        """Whether its program ended as none does by itself: somebody ended it."""
        status, planned = self.main.status, self.main.end_status
        return status in (SIGTERM, CLEANED_UP) or (
            status == SIGKILL and planned != SIGKILL
        )


class Witness:
    """Every start and end, in order."""

    def __init__(self, world: World) -> None:
        self.runs: dict[str, Run] = {}
        self._world = world
        self._capacity: dict[tuple[str, str, str], int] = {}
        self._held: dict[tuple[str, str, str], int] = {}
        self._alive: dict[int, list[Run]] = {}
        """Jobs with something alive."""

    def has(self, host: Host, capacity: Capacity) -> None:
        """Learn what a machine has."""
        self._capacity.update(_amounts(host, capacity))

    def started(self, process: Process, *, forgiven: bool) -> None:
        """Note that a program runs; maybe on a machine that was said to be gone."""
        name = process.attempt
        process.host.note(f"START {name} pid {process.pid}")
        if name in self.runs:
            raise Violation(f"attempt {name} is run twice")
        run = self.runs[name] = Run(process)
        run.forgiven = forgiven
        alive = self._alive.setdefault(attempt_id(name).job, [])
        for other in alive:
            if not (forgiven or other.forgiven or other.doomed):
                raise Violation(f"{name} starts while {other.main.attempt} is alive")
        alive.append(run)
        for key, amount in _amounts(process.host, run.allocation):
            held = self._held[key] = self._held.get(key, 0) + amount
            if held > self._capacity.get(key, 0):
                raise Violation(f"{' '.join(key)} is oversubscribed by {name}")

    def ended(self, process: Process) -> None:
        """Note that a process is gone."""
        if not process.runs:
            return
        run = self.runs[process.attempt]
        run.living -= 1
        if process is run.main:
            run.lasted_us = self._world.now - run.started_us
            process.host.note(f"END {process.attempt} status {process.status}")
        if run.over:
            job = attempt_id(process.attempt).job
            self._alive[job].remove(run)
            if not self._alive[job]:
                del self._alive[job]
            for key, amount in _amounts(process.host, run.allocation):
                self._held[key] -= amount

    def doomed(self, host: Host) -> list[Run]:
        """Give what lives on a machine and was given up while that slept."""
        living = [run for runs in self._alive.values() for run in runs]
        return [run for run in living if run.doomed and run.main.host is host]

    def alive(self) -> list[str]:
        """Give the attempts of which something lives."""
        return [run.main.attempt for runs in self._alive.values() for run in runs]


def _amounts(
    host: Host, units: Allocation | Capacity
) -> list[tuple[tuple[str, str, str], int]]:
    return [
        ((host.name, kind, unit), amount)
        for kind, named in units.items()
        for unit, amount in named.items()
    ]
