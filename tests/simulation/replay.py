"""From the journal alone to what became of every job.

The journal does not say why a job does not start: that it began held, that its
dependencies were met or that its time came are not lines of it. So `held`, `waiting`
and `queued` are one here; how often a job was tried and how it ended must be exact.
"""

import json
from typing import NamedTuple

from grass.model.lifecycle import ENDED, JobState
from tests.simulation.memory_store import MemoryDisk
from tests.simulation.world import Violation

NOT_STARTED, RUNNING = "not started", "running"


class Told(NamedTuple):
    """What the journal tells of a job."""

    state: str
    attempts: int


def replayed(disk: MemoryDisk) -> dict[int, Told]:
    """Read the journal from its first line to its last."""
    # The line of an array's arrival goes with its first job.
    jobs: dict[int, Told] = {
        job.id: Told(NOT_STARTED, 0)
        for job in disk.jobs.values()
        if job.array is not None and job.array not in disk.jobs
    }
    for line in disk.events:
        data = json.loads(line.data)
        if line.kind == "enqueued" and line.job is not None:
            for number in range(line.job, data["last"] + 1):
                jobs[number] = Told(NOT_STARTED, 0)
        elif line.job is not None:
            told = jobs[line.job]
            jobs[line.job] = _after(told, line.kind, line.attempt, data)
    return jobs


def _after(told: Told, kind: str, attempt: int | None, data: dict[str, object]) -> Told:
    if kind == "started":
        return Told(RUNNING, told.attempts + 1)
    if kind == "returned":
        return Told(NOT_STARTED, told.attempts - 1)
    if kind == "finished":
        return told._replace(state=str(data["state"]))
    if kind in ("retried", "requeued", "rerun"):
        return told._replace(state=NOT_STARTED)
    if kind == "cancelled" and attempt is None:
        return told._replace(state=JobState.CANCELLED.value)
    return told


def check(disk: MemoryDisk) -> None:
    """Compare what the journal tells with the tables."""
    told = replayed(disk)
    for job in disk.jobs.values():
        state = job.state.value if job.state in ENDED else NOT_STARTED
        state = RUNNING if job.state is JobState.RUNNING else state
        expected = Told(state, job.attempts)
        if told.get(job.id) != expected:
            raise Violation(
                f"job {job.id} is {expected}, the journal says {told[job.id]}"
            )
