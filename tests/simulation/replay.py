"""Replays the journal alone to find the state of every job.

The journal has no events for a job that begins held, for dependencies that are met or
for a start time that has come. So `held`, `waiting` and `queued` are one state here;
the number of attempts and the end of a job must be exact.
"""

import json
from typing import NamedTuple

from grass.model.jobs.lifecycle import ENDED, JobState
from tests.simulation.memory_store import MemoryDisk
from tests.simulation.world import Violation

NOT_STARTED, RUNNING = "not started", "running"


class Replayed(NamedTuple):
    """The state of a job by the journal."""

    state: str
    attempts: int


def replayed(disk: MemoryDisk) -> dict[int, Replayed]:
    """Read the journal from its first line to its last."""
    # The event of an array's arrival is pruned with its first job.
    jobs: dict[int, Replayed] = {
        job.id: Replayed(NOT_STARTED, 0)
        for job in disk.jobs.values()
        if job.array is not None and job.array not in disk.jobs
    }
    for line in disk.events:
        data = json.loads(line.data)
        if line.kind == "enqueued" and line.job is not None:
            for number in range(line.job, data["last"] + 1):
                jobs[number] = Replayed(NOT_STARTED, 0)
        elif line.job is not None:
            told = jobs[line.job]
            jobs[line.job] = _after(told, line.kind, line.attempt, data)
    return jobs


def _after(
    told: Replayed, kind: str, attempt: int | None, data: dict[str, object]
) -> Replayed:
    if kind == "started":
        return Replayed(RUNNING, told.attempts + 1)
    if kind == "returned":
        return Replayed(NOT_STARTED, told.attempts - 1)
    if kind == "finished":
        return told._replace(state=str(data["state"]))
    if kind in ("retried", "requeued", "rerun"):
        return told._replace(state=NOT_STARTED)
    if kind == "cancelled" and attempt is None:
        return told._replace(state=JobState.CANCELLED.value)
    return told


def check(disk: MemoryDisk) -> None:
    """Compare the replayed journal with the tables."""
    told = replayed(disk)
    for job in disk.jobs.values():
        state = job.state.value if job.state in ENDED else NOT_STARTED
        state = RUNNING if job.state is JobState.RUNNING else state
        expected = Replayed(state, job.attempts)
        if told.get(job.id) != expected:
            raise Violation(
                f"job {job.id} is {expected}, the journal says {told[job.id]}"
            )
