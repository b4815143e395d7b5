"""Arrays: how many members run at a time, and what happens when too many fail.

An array is known by its first job. It is remembered as long as a member is unfinished.
A queue may count failures too: those in a row, while an array counts all of its own.
Where the count is reached the queue is paused with a reason, so that a typo does not
fail five hundred jobs; resuming the queue resets the count.
"""

from grass.broker.core.attempts import prefetch
from grass.broker.core.jobs.job_memory import ArrayState
from grass.broker.core.state import State
from grass.model.jobs.arrays import limiter
from grass.model.jobs.job import Common, Job
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import Spec
from grass.model.queue import Queue


def limiters_of(job: Job, spec: Spec) -> tuple[str, ...]:
    """Return the limiter of a job's array, if it has a cap."""
    if job.array is None or spec.at_most is None:
        return ()
    return (limiter(job.array),)


def join(state: State, common: Common, count: int = 1) -> None:
    """Count unfinished members."""
    number = common.array
    if number is None:
        return
    array = state.arrays.active.get(number)
    if array is None:
        array = state.arrays.active[number] = ArrayState()
        array.stored = number in state.arrays.stored_fails
        array.fails = state.arrays.stored_fails.pop(number, 0)
    array.unfinished += count
    array.queues.add(common.queue)
    at_most = state.specs[common.spec].at_most
    if at_most is not None:
        state.scheduler.set_limit(limiter(number), at_most)


def moved(state: State, job: Job) -> None:
    """Note that a member is in another queue now."""
    if job.array is not None:
        state.arrays.active[job.array].queues.add(job.queue)


def leave(state: State, job: Job) -> None:
    """Forget an array with its last unfinished member."""
    if job.array is None:
        return
    array = state.arrays.active[job.array]
    array.unfinished -= 1
    if array.unfinished == 0:
        del state.arrays.active[job.array]
        state.scheduler.forget_limit(limiter(job.array))
        if array.stored:
            state.batch.changes.arrays.pop(job.array, None)
            state.batch.changes.removed_arrays.append(job.array)


def count_end(state: State, job: Job, end: JobState) -> None:
    """Count a failure; pause the queue where there were too many."""
    queue = state.queues.get(job.queue)
    if queue is None:
        return
    _count_in_a_row(state, queue, end)
    most = state.specs[job.spec].max_fails
    if end is not JobState.FAILED or job.array is None or most is None:
        return
    array = state.arrays.active[job.array]
    array.fails, array.stored = array.fails + 1, True
    state.batch.changes.arrays[job.array] = array.fails
    if array.fails >= most:
        _pause(state, queue, f"{array.fails} jobs of the array {job.array} failed")


def start_counting_anew(state: State, queue: Queue) -> None:
    """Forget the failures that paused a queue."""
    queue.fails, queue.paused_reason = 0, None
    for first, array in state.arrays.active.items():
        if queue.name in array.queues and array.fails:
            array.fails = 0
            state.batch.changes.arrays[first] = 0


def _count_in_a_row(state: State, queue: Queue, end: JobState) -> None:
    if queue.max_fails is None or end not in (JobState.FAILED, JobState.SUCCEEDED):
        return
    fails = queue.fails + 1 if end is JobState.FAILED else 0
    if fails == queue.fails:
        return
    queue.fails = fails
    state.batch.changes.queues[queue.name] = queue
    if fails >= queue.max_fails:
        _pause(state, queue, f"{fails} jobs in a row failed")


def _pause(state: State, queue: Queue, because: str) -> None:
    if queue.paused:
        return
    queue.paused = True
    queue.paused_reason = because
    state.batch.changes.queues[queue.name] = queue
    state.scheduler.set_queue_paused(queue.name, paused=True)
    prefetch.recall_all(state, queue.name)
    state.note("paused", queue=queue.name, reason=queue.paused_reason)
