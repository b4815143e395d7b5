"""Guests: processes that ask for units, use them for a while, and give them back.

They have draws of their own, and most runs have none, so that the other histories are
the same with and without them. A guest that waits too long gives up; one that is
suspended can do nothing, as in life.
"""

from random import Random
from typing import TYPE_CHECKING

from grass.broker.core.calls import AnyCall, Enqueue, GiveBackGuest, NewJob
from grass.model.jobs.lifecycle import AttemptState
from grass.model.jobs.spec import JobPatch
from tests.simulation.cluster import Cluster
from tests.simulation.job_plans import DIES, IGNORES
from tests.simulation.machine import Machine
from tests.simulation.processes import Process
from tests.simulation.world import MILLISECOND, SECOND

if TYPE_CHECKING:
    from tests.simulation.clients import Clients

SHARE_OF_RUNS = 0.25
LOOK_US = 20 * MILLISECOND


class Guests:
    """All guests of one run."""

    def __init__(self, clients: "Clients", cluster: Cluster) -> None:
        self._clients = clients
        self._cluster = cluster
        self._rng = Random(cluster.world.seed + 1_000_000_007)

    def plan(self, until_us: int) -> None:
        """Draw how many there are, and when they come."""
        if self._rng.random() > SHARE_OF_RUNS:
            return
        for _ in range(self._rng.randint(3, 12)):
            delay = self._rng.randrange(until_us)
            self._cluster.world.elsewhere.after(delay, "", self._come)

    def _come(self) -> None:
        machine = self._rng.choice(self._cluster.machines)
        if not machine.host.asleep:
            Guest(self._clients, self._cluster, machine, self._rng).enter()


class Guest:
    """One process that wants units once."""

    alive = True

    def __init__(
        self, clients: "Clients", cluster: Cluster, machine: Machine, rng: Random
    ) -> None:
        self._clients = clients
        self._cluster = cluster
        self._rng = rng
        self._machine = machine
        on_term = rng.choice((DIES, DIES, IGNORES))
        self._process: Process = machine.processes.new_guest(on_term)
        self._name = ""
        self._patience_us = int(rng.random() * 8 * SECOND)
        self._uses_us = int(5 * MILLISECOND * 600 ** rng.random())

    def enter(self) -> None:
        """Ask for units, and look from time to time whether they are there."""
        process, machine = self._process, self._machine
        patch = JobPatch(
            request=(("cpu", self._rng.choice((5_000, 10_000))),),
            worker=machine.id,
            guest=(process.pid, process.ticks),
            grace_s=self._rng.choice((0.0, 0.5)),
        )

        def make(name: str) -> AnyCall:
            self._name = name
            return Enqueue("uid:1", [NewJob((), patch, name=name)], name)

        self._clients.ask(make, 1)
        self._look_later()

    def _look_later(self) -> None:
        self._machine.host.after(LOOK_US, "", self._look, self._process)

    def _look(self) -> None:
        process = self._process
        self._patience_us -= LOOK_US
        if process.stopped:
            self._look_later()
        elif self._has_units():
            self._machine.host.after(self._uses_us, "", self._done, process)
        elif self._patience_us < 0:
            self._give_back(130 << 8)
        else:
            self._look_later()

    def _has_units(self) -> bool:
        broker, job = self._cluster.broker, self._job()
        attempt = None if broker is None else broker.state.attempts.get(job)
        return attempt is not None and attempt.state is AttemptState.RUNNING

    def _job(self) -> int:
        jobs = self._cluster.disk.jobs.values()
        return next((one.id for one in jobs if one.name == self._name), 0)

    def _done(self) -> None:
        if self._process.stopped:
            self._machine.host.after(LOOK_US, "", self._done, self._process)
        elif self._rng.random() < 0.3:
            # It ends and gives nothing back.
            self._process.end_status = self._rng.choice((0, 256, 9))
            self._machine.processes.die(self._process, self._process.end_status)
        else:
            self._give_back(self._rng.choice((0, 0, 1)) << 8)

    def _give_back(self, status: int) -> None:
        processes, job = self._machine.processes, self._job()
        processes.give_back(self._process, status)
        if job:
            self._clients.ask(lambda name: GiveBackGuest(name, job, status >> 8))
        processes.end_within(self._process, int(self._rng.random() * 3 * SECOND))
