"""Jobs that are moved to right before another one that waits.

There is one order of starting: priority, then arrival. So a job gets a priority between
those of its new neighbours. Where there is none, jobs further ahead in the queue get
higher ones, all by the same amount: they keep their order.
"""

from collections.abc import Generator, Sequence

from grass.broker.core.calls import Found
from grass.broker.core.jobs import bulk_calls
from grass.broker.core.state import State
from grass.errors import Refused
from grass.model.jobs.commands import LARGEST_PRIORITY
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import JobState

RAISED_BY = 2
"""Leaves one priority free below those that were raised."""


def before(
    state: State, numbers: Sequence[int], other: int
) -> Generator[list[int], Found | None, dict[int, int]]:
    """Return the priorities by which jobs start right before another one.

    Several jobs go there in the order of their ids.
    """
    target = _target(state, numbers, other)
    ahead = yield from _ahead_of(state, target, set(numbers))
    last = max(ahead.values(), key=_order, default=None)
    fitting = _between(last, target, numbers)
    if fitting is not None:
        return dict.fromkeys(numbers, fitting)
    raised = {one.id: one.priority + RAISED_BY for one in ahead.values()}
    if max(raised.values()) > LARGEST_PRIORITY:
        raise Refused(
            f"no priority is left above those of the jobs before job {other}",
            "give those lower ones first, with `grass edit ID --priority N`",
        )
    return raised | dict.fromkeys(numbers, target.priority + 1)


def _target(state: State, numbers: Sequence[int], other: int) -> Job:
    """Return the job before which others are to start, or refuse it."""
    target = state.jobs.get(other)
    if target is None or target.state is JobState.RUNNING:
        raise Refused(f"job {other} does not wait", "name one that has not started")
    if other in numbers:
        raise Refused(f"job {other} cannot start before itself")
    for number in numbers:
        job = state.jobs.get(number)
        if job is not None and job.queue != target.queue:
            raise Refused(
                f"job {number} waits in queue `{job.queue}`, job {other} in"
                f" `{target.queue}`",
                f"`grass edit {number} --queue {target.queue}` first",
            )
    return target


def _ahead_of(
    state: State, target: Job, named: set[int]
) -> Generator[list[int], Found | None, dict[int, Job]]:
    """Return the other jobs of a queue that start before a job."""
    ahead, limit = dict[int, Job](), _order(target)

    def look(job: Job) -> None:
        if job.queue == target.queue and _order(job) < limit:
            ahead[job.id] = job

    yield from bulk_calls.look_at_waiting(state, named, look)
    return ahead


def _between(last: Job | None, target: Job, numbers: Sequence[int]) -> int | None:
    """Return a priority between two neighbours; None: there is none."""
    for priority in (target.priority, target.priority + 1):
        if priority > LARGEST_PRIORITY:
            continue
        places = [(-priority, number) for number in numbers]
        after_last = last is None or _order(last) < min(places)
        if after_last and max(places) < _order(target):
            return priority
    return None


def _order(job: Job) -> tuple[int, int]:
    return -job.priority, job.id
