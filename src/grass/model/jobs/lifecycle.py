"""The states of jobs and attempts, and the allowed transitions.

Every change of a state in Grass goes through `moved_job` or `moved_attempt`; a
transition that is not in the tables is a defect and raises. The tables are data: the
documentation's diagrams and the tests are made from them.

A job waits (`held`, `waiting`, `queued`), runs, or has ended. Placing it makes it
`running` together with a new attempt in `starting`, whose own state then changes.
Stopping, suspended and unreachable are flags of a running job, not states.
"""

from enum import StrEnum

from grass.errors import InvalidTransition


class JobState(StrEnum):
    """The state of a job."""

    HELD = "held"
    WAITING = "waiting"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LOST = "lost"


class AttemptState(StrEnum):
    """The state of an attempt."""

    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"
    LOST = "lost"


ENDED = frozenset(
    {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED, JobState.LOST}
)
UNFINISHED = frozenset(JobState) - ENDED
_RERUN = frozenset({JobState.HELD, JobState.WAITING, JobState.QUEUED})

JOB_ARROWS: dict[JobState, frozenset[JobState]] = {
    JobState.HELD: frozenset({JobState.WAITING, JobState.QUEUED, JobState.CANCELLED}),
    JobState.WAITING: frozenset({JobState.HELD, JobState.QUEUED, JobState.CANCELLED}),
    JobState.QUEUED: frozenset(
        {JobState.HELD, JobState.WAITING, JobState.RUNNING, JobState.CANCELLED}
    ),
    JobState.RUNNING: ENDED | {JobState.QUEUED, JobState.WAITING},
    JobState.SUCCEEDED: _RERUN,
    JobState.FAILED: _RERUN,
    JobState.CANCELLED: _RERUN,
    JobState.LOST: _RERUN,
}

ATTEMPT_ARROWS: dict[AttemptState, frozenset[AttemptState]] = {
    AttemptState.STARTING: frozenset(
        {AttemptState.RUNNING, AttemptState.EXITED, AttemptState.LOST}
    ),
    AttemptState.RUNNING: frozenset({AttemptState.EXITED, AttemptState.LOST}),
    AttemptState.EXITED: frozenset(),
    AttemptState.LOST: frozenset(),
}


def moved_job(old: JobState, new: JobState) -> JobState:
    """Return `new` if a job may go there from `old`."""
    if new not in JOB_ARROWS[old]:
        raise InvalidTransition(f"a job cannot go from {old} to {new}")
    return new


def moved_attempt(old: AttemptState, new: AttemptState) -> AttemptState:
    """Return `new` if an attempt may go there from `old`."""
    if new not in ATTEMPT_ARROWS[old]:
        raise InvalidTransition(f"an attempt cannot go from {old} to {new}")
    return new
