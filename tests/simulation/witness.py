"""An independent record of what really ran, made by the simulated processes.

It knows nothing of brokers, workers and keepers. At every start it checks that an
attempt runs once, that a job has one attempt alive on all machines together, and that
no unit is oversubscribed.

There are two exceptions. What a forgotten machine still runs was given up by the user.
And what stands still on a machine that sleeps may be replaced once its lease is over,
but must be ended soon after the machine wakes.
"""

from typing import cast

from grass.keeper.protocol import Notes
from grass.model.ids import attempt_id
from grass.model.resources import Allocation, Capacity
from tests.simulation.processes import SIGKILL, SIGTERM, Process
from tests.simulation.world import Host, Violation, World

CLEANED_UP = 143 << 8
"""The status of a program that cleans up on SIGTERM."""


class Run:
    """One attempt as it really ran."""

    def __init__(self, main: Process) -> None:
        self.main = main
        self.living = 1 + len(main.children)
        self.started_us = main.host.world.now
        self.lasted_us: int | None = None
        """How long its main process lived."""
        self.allocation: Allocation = cast("Notes", main.start.meta).allocation
        self.forgiven = False
        """Whether its machine was forgotten."""
        self.doomed = False
        """Whether it was recorded as lost while its machine slept."""

    @property
    def over(self) -> bool:
        """Whether none of its processes lives."""
        return self.living == 0

    @property
    def was_stopped(self) -> bool:
        """Whether its program was ended by a signal that it did not plan."""
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
        """Jobs with live processes."""

    def has(self, host: Host, capacity: Capacity) -> None:
        """Record the capacity of a machine."""
        self._capacity.update(_amounts(host, capacity))

    def started(self, process: Process, *, forgiven: bool) -> None:
        """Record the start of a program; `forgiven` on a forgotten machine."""
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

    def shrunk(self, name: str, allocation: Allocation) -> None:
        """Record that an attempt keeps only a part of what it has."""
        run = self.runs.get(name)
        if run is None or run.over:
            return
        host = run.main.host
        host.note(f"KEEPS {name} {allocation}")
        has, keeps = dict(_amounts(host, run.allocation)), _amounts(host, allocation)
        if any(amount > has.get(key, 0) for key, amount in keeps):
            raise Violation(f"{name} keeps more than it has")
        for key, amount in has.items():
            self._held[key] -= amount - dict(keeps).get(key, 0)
        run.allocation = allocation

    def ended(self, process: Process) -> None:
        """Record the end of a process."""
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
        """Return what lives on a machine and was lost while that slept."""
        living = [run for runs in self._alive.values() for run in runs]
        return [run for run in living if run.doomed and run.main.host is host]

    def alive(self) -> list[str]:
        """Return the attempts with live processes."""
        return [run.main.attempt for runs in self._alive.values() for run in runs]


def _amounts(
    host: Host, units: Allocation | Capacity
) -> list[tuple[tuple[str, str, str], int]]:
    return [
        ((host.name, kind, unit), amount)
        for kind, named in units.items()
        for unit, amount in named.items()
    ]
