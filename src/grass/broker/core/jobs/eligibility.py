"""Jobs that may not start yet: they are held, or wait for other jobs or for a time.

A job waits while one of its dependencies is open or its time has not come. Once all its
dependencies were met they are not checked again (`Job.met`). A dependency that can no
longer be met cancels its dependents, and theirs in turn. `dependency_graph` knows the
dependents of a job.

An end may concern a hundred thousand jobs, so its dependents are checked in slices.
"""

from collections.abc import Iterable
from heapq import heappop, heappush

from grass.broker.core.attempts import avoided
from grass.broker.core.attempts.outcomes import FORGOTTEN, backoff_s
from grass.broker.core.jobs import array_limits, dependency_graph
from grass.broker.core.state import State
from grass.model.jobs.job import Job
from grass.model.jobs.job_types import learned_type
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import Spec
from grass.model.times import rfc3339

SLICE = 1000
RUNS_ELSEWHERE = "an attempt of it runs that this database knows nothing of"
"""The reason of a job that is held because of a foreign attempt."""
MAX_NAMED = 5
"""The workers that one reason names."""


def first_state(state: State, spec: Spec, *, hold: bool) -> JobState:
    """Return the state of a new job."""
    if hold:
        return JobState.HELD
    later = spec.begin_at is not None and spec.begin_at > state.now_us
    return JobState.WAITING if spec.after or later else JobState.QUEUED


def enter(state: State, job: Job) -> None:
    """Enter an unfinished job: it waits, or is queued."""
    if job.state in (JobState.HELD, JobState.WAITING):
        dependency_graph.join(state, job)
    queue_if_ready(state, job)


def enter_all(state: State, jobs: Iterable[Job]) -> None:
    """Enter unfinished jobs; queued ones that have most in common go together."""
    together: list[Job] = []
    for job in jobs:
        if together and not _goes_with(state, job, together):
            _enter_alike(state, together)
            together = []
        together.append(job)
    _enter_alike(state, together)


def _goes_with(state: State, job: Job, others: list[Job]) -> bool:
    one = others[0]
    alike = job.common is one.common and job.state is one.state
    alike = alike and state.avoided.of_jobs.keys().isdisjoint((job.id, one.id))
    return alike and len(others) < SLICE


def _enter_alike(state: State, jobs: list[Job]) -> None:
    if jobs and jobs[0].state is JobState.QUEUED:
        _queue_alike(state, jobs)
    else:
        for job in jobs:
            enter(state, job)


def queue_if_ready(state: State, job: Job) -> None:
    """Queue a job if it waits for nothing any more."""
    if job.state is JobState.WAITING and not dependency_graph.join(state, job):
        _wait_for_time(state, job)
    if job.state is JobState.QUEUED:
        queue_job(state, job)


def _wait_for_time(state: State, job: Job) -> None:
    """Queue a job that waits for nothing but its time, when that has come.

    Only such a job has a timer: one that was held when its time came could find, at its
    release, that the clock was set back meanwhile.
    """
    _bound_backoff(state, job)
    at = _starts_at(state, job)
    if at > state.now_us:
        heappush(state.start_times.heap, (at, job.id))
    else:
        dependency_graph.leave(state, job)
        job.met = True
        state.move_job(job, JobState.QUEUED)


def queue_job(state: State, job: Job) -> None:
    """Hand a queued job to the scheduler."""
    _queue_alike(state, [job])


def hold_back(state: State, job: Job) -> None:
    """Hold a job that waits: an attempt of it runs that is not this database's."""
    if job.state in (JobState.WAITING, JobState.QUEUED):
        state.scheduler.remove(job.id)
        state.move_job(job, JobState.HELD)
        job.reason = RUNS_ELSEWHERE
        state.note("held", job.id, reason=job.reason)


def unreported(state: State, job: Job) -> list[str]:
    """Return the workers that may run a foreign attempt of a job that is held for it.

    This broker began after the job was held, and they have not reported to it.
    """
    if not _is_held_back(job):
        return []
    pinned = state.specs[job.spec].worker
    return [
        worker.name
        for worker in state.workers.values()
        if worker.id not in state.foreign.reported and pinned in (None, worker.id)
    ]


def unreported_text(names: list[str]) -> str:
    """Name the workers that have to report, and what to do if one never will."""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    named = ", ".join(f"`{name}`" for name in names[:MAX_NAMED])
    return (
        f"it may still run on a worker that has not reported yet ({named}{more});"
        f" one that never will: `grass workers forget {names[0]}`"
    )


def _is_held_back(job: Job) -> bool:
    return job.state is JobState.HELD and job.reason == RUNS_ELSEWHERE


def let_go(state: State, job: Job) -> None:
    """Release a job that was held for an attempt that never began."""
    if _is_held_back(job) and not state.foreign.runs(job.id):
        job.reason = None
        state.move_job(job, JobState.WAITING)
        state.note("released", job.id)
        queue_if_ready(state, job)


def _queue_alike(state: State, jobs: list[Job]) -> None:
    for job in [job for job in jobs if state.foreign.runs(job.id)]:
        hold_back(state, job)
        jobs.remove(job)
    if not jobs:
        return
    one, spec = jobs[0], state.specs[jobs[0].spec]
    state.scheduler.enqueue_all(
        [job.id for job in jobs],
        one.queue,
        spec.request,
        one.priority,
        worker=state.pools.bound.get(one.id, spec.worker),
        labels=spec.all_labels,
        limiters=array_limits.limiters_of(one, spec),
        gpu_model=spec.gpu_model,
        policy=spec.policy,
        learned=learned_type(spec, one),
        process=spec.asks_again,
        time_s=spec.rounded_time_s,
        kind=avoided.kind_to_queue(state, one, spec),
    )


def advance(state: State) -> list[tuple[Job, str]]:
    """Check one slice of the jobs that depended on an end.

    Returns the jobs that can never start now, and why.
    """
    unmeetable: list[tuple[Job, str]] = []
    if not state.dependencies.unchecked:
        return unmeetable
    members = state.dependencies.unchecked[0]
    for number in members[:SLICE]:
        job = state.jobs.get(number)
        group = None if job is None else state.dependencies.groups.get(job.spec)
        if job is None or group is None or number not in group.members:
            continue
        if group.unmeetable is not None:
            unmeetable.append((job, group.unmeetable))
        elif job.state is JobState.WAITING:
            queue_if_ready(state, job)
    del members[:SLICE]
    if not members:
        state.dependencies.unchecked.popleft()
    return unmeetable


def due(state: State) -> None:
    """Queue the jobs whose time has come."""
    if state.now_us < state.start_times.checked_us:
        _clock_set_back(state)
    state.start_times.checked_us = state.now_us
    while state.start_times.heap and state.start_times.heap[0][0] <= state.now_us:
        job = state.jobs.get(heappop(state.start_times.heap)[1])
        if job is not None and job.state is JobState.WAITING:
            queue_if_ready(state, job)


def _clock_set_back(state: State) -> None:
    """Set the ends of retry pauses again: the clock had shown a later time."""
    for _, number in list(state.start_times.heap):
        job = state.jobs.get(number)
        if job is not None and _bound_backoff(state, job):
            heappush(state.start_times.heap, (_starts_at(state, job), number))


def _bound_backoff(state: State, job: Job) -> bool:
    """Limit a retry pause to its length from now; tell whether it was longer."""
    if job.not_before is None:
        return False
    spec = state.specs[job.spec]
    latest = state.now_us + int(backoff_s(spec, job.failures) * 1_000_000)
    if job.not_before <= latest:
        return False
    job.not_before = latest
    state.save_job(job)
    return True


def next_time(state: State) -> int | None:
    """Return the time that the next job waits for."""
    while state.start_times.heap:
        at, number = state.start_times.heap[0]
        job = state.jobs.get(number)
        if job is not None and _waits_until(state, job) == at:
            return at
        heappop(state.start_times.heap)
    return None


def _waits_until(state: State, job: Job) -> int | None:
    """Return the time that a job waits for, if it waits for nothing else."""
    if job.state is not JobState.WAITING or dependency_graph.open_dependencies(
        state, job
    ):
        return None
    return _starts_at(state, job)


def why(state: State, job: Job) -> str:
    """Describe in one line why a held or waiting job does not start."""
    if job.state is JobState.HELD:
        return _why_held(state, job)
    still_open = dependency_graph.open_dependencies(state, job)
    if still_open:
        return dependency_graph.open_text(state, job, still_open)
    at = _starts_at(state, job)
    if job.not_before is not None and job.not_before == at:
        return f"retry {job.failures} at {rfc3339(at)}"
    return f"begins {rfc3339(at)}" if at else "starts with the next decision"


def _why_held(state: State, job: Job) -> str:
    if job.reason == FORGOTTEN:
        return (
            "held: its worker was forgotten, and may still run it;"
            f" `grass release {job.id}` runs it again"
        )
    if state.foreign.runs(job.id):
        return f"held: {RUNS_ELSEWHERE}; `grass workers foreign` lists it"
    if names := unreported(state, job):
        return f"held: {unreported_text(names)}"
    return f"held; `grass release {job.id}` lets it start"


def _starts_at(state: State, job: Job) -> int:
    return max(state.specs[job.spec].begin_at or 0, job.not_before or 0)
