"""Arrays whose members are all changed by one call, while some of them are cancelled.

A large call is done in slices, and other calls come between them. These clients have
draws of their own, and most runs have none, so that the other histories are the same
with and without them.
"""

from collections.abc import Callable
from functools import partial
from random import Random
from typing import TYPE_CHECKING

from grass.broker.core.calls import (
    AnyCall,
    Cancel,
    Edit,
    Enqueue,
    NewJob,
    ReleaseJobs,
    Rerun,
)
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import ENDED, JobState
from grass.model.jobs.spec import JobPatch
from tests.simulation.cluster import Cluster
from tests.simulation.world import MILLISECOND, SECOND

if TYPE_CHECKING:
    from tests.simulation.clients import Clients

SHARE_OF_RUNS = 0.2


class ArrayEdits:
    """All such arrays of one run."""

    def __init__(self, clients: "Clients", cluster: Cluster) -> None:
        self._clients = clients
        self._cluster = cluster
        self._rng = Random(f"array edits {cluster.world.seed}")

    def plan(self, until_us: int) -> None:
        """Draw how many there are, and when they come."""
        if self._rng.random() > SHARE_OF_RUNS:
            return
        for _ in range(self._rng.randint(1, 4)):
            self._after(self._rng.randrange(until_us), self._enqueue)

    def _after(self, delay_us: int, act: Callable[[], object]) -> None:
        self._cluster.world.elsewhere.after(delay_us, "", act)

    def _between(self, least_us: int, most_us: int) -> int:
        return int(least_us * (most_us / least_us) ** self._rng.random())

    def _enqueue(self) -> None:
        """Enqueue a held array, to be changed once it is there."""
        size, patch = self._rng.randint(3, 6), JobPatch(hold=True)

        def make(name: str) -> AnyCall:
            jobs = [NewJob(("work",), patch, name=name, index=n) for n in range(size)]
            return Enqueue("uid:1", jobs, name)

        name = self._clients.ask(make, size).name
        runs_again = self._rng.random() < 0.5
        delay = self._between(SECOND, 4 * SECOND)
        if runs_again:
            self._after(delay, lambda: self._cancel_all(self._members(name)))
            delay += self._between(100 * MILLISECOND, 2 * SECOND)
        change = self._rerun if runs_again else self._edit
        self._after(delay, lambda: change(self._members(name)))
        delay += self._between(SECOND, 4 * SECOND)
        self._after(delay, lambda: self._release(self._members(name)))

    def _members(self, name: str) -> list[Job]:
        jobs = self._cluster.disk.jobs.values()
        return [job for job in jobs if job.name == name]

    def _edit(self, members: list[Job]) -> None:
        held = [job.id for job in members if job.state is JobState.HELD]
        if held:
            patch = self._patch()
            self._clients.ask(lambda name: Edit(name, list(held), patch))
            self._cancel_first(held)

    def _rerun(self, members: list[Job]) -> None:
        ended = [job.id for job in members if job.state in ENDED]
        if ended:
            patch = self._patch()
            self._clients.ask(
                lambda name: Rerun(name, list(ended), patch, True, wanted=list(ended))
            )
            self._cancel_first(ended)

    def _patch(self) -> JobPatch:
        return JobPatch(retries=self._rng.choice((1, 2)), grace_s=3.0)

    def _cancel_first(self, numbers: list[int]) -> None:
        """Cancel those that are changed first, perhaps before the others are."""
        delay = self._between(100, SECOND)
        for number in numbers[: self._rng.randint(1, 3)]:
            self._after(delay, partial(self._cancel, [number]))

    def _cancel_all(self, members: list[Job]) -> None:
        if members:
            self._cancel([job.id for job in members])

    def _cancel(self, jobs: list[int]) -> None:
        self._clients.ask(lambda name: Cancel(name, list(jobs)))

    def _release(self, members: list[Job]) -> None:
        held = [job.id for job in members if job.state is JobState.HELD]
        if held:
            self._clients.ask(lambda name: ReleaseJobs(name, list(held)))
