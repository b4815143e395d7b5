"""The independent ledger: what really ran, as the processes themselves noted it.

It knows nothing of brokers, workers and keepers. At every start it checks what no
bookkeeping can excuse: an attempt runs once, a job has one attempt alive, and no unit
is given to more processes than it has room for.
"""

from grass.model.ids import attempt_id
from grass.model.resources import Allocation, Capacity
from tests.simulation.processes import Process
from tests.simulation.world import Violation, World


class Run:
    """One attempt as it really went."""

    def __init__(self, main: Process, at: int) -> None:
        """Begin with its main process and the children that made."""
        self.main = main
        self.at = at
        self.living = 1 + len(main.children)
        self.allocation: Allocation = main.spec.meta["allocation"]

    @property
    def over(self) -> bool:
        """Whether nothing of it lives."""
        return self.living == 0


class Witness:
    """Every start and end, in order."""

    def __init__(self, world: World, capacity: Capacity) -> None:
        """Know what the machine has."""
        self.runs: dict[str, Run] = {}
        self._world = world
        self._capacity = capacity
        self._held: dict[tuple[str, str], int] = {}
        self._alive: dict[int, str] = {}
        """Jobs with something alive, and which attempt."""

    def started(self, process: Process) -> None:
        """Note that a program runs."""
        name = process.attempt
        self._world.note(f"START {name} pid {process.pid}")
        if name in self.runs:
            raise Violation(f"attempt {name} is run twice")
        job = attempt_id(name).job
        if job in self._alive:
            raise Violation(f"{name} starts while {self._alive[job]} is alive")
        run = Run(process, self._world.now)
        self.runs[name] = run
        self._alive[job] = name
        for key, amount in _amounts(run.allocation):
            held = self._held[key] = self._held.get(key, 0) + amount
            if held > self._capacity.get(key[0], {}).get(key[1], 0):
                kind, unit = key
                raise Violation(f"{kind} {unit} is oversubscribed by {name}")

    def ended(self, process: Process) -> None:
        """Note that a process is gone."""
        if not process.runs:
            return
        run = self.runs[process.attempt]
        run.living -= 1
        if process is run.main:
            self._world.note(f"END {process.attempt} status {process.status}")
        if run.over:
            del self._alive[attempt_id(process.attempt).job]
            for key, amount in _amounts(run.allocation):
                self._held[key] -= amount

    def alive(self) -> list[str]:
        """Give the attempts of which something lives."""
        return list(self._alive.values())


def _amounts(allocation: Allocation) -> list[tuple[tuple[str, str], int]]:
    return [
        ((kind, unit), amount)
        for kind, units in allocation.items()
        for unit, amount in units.items()
    ]
