"""Jobs that have a pilot of their own: each runs on it, or elsewhere, but never twice.

Such a job waits as any other, and may start on a worker that has room first. When its
pilot's worker comes the job is bound to it: no other job is placed there, and the job
nowhere else. A pilot whose job is gone leaves, whether its worker has come or not; so
does one that has run its job.
"""

from grass.broker.core.jobs import eligibility
from grass.broker.core.pools import asking, leaving
from grass.broker.core.state import State
from grass.model.durations import duration_text
from grass.model.jobs.job import Job
from grass.model.pools import Pilot, PilotStage, pool_label

_SECOND_US = 1_000_000


def follow(state: State) -> None:
    """Let pilots leave that have no job any more, and bind jobs to those that came."""
    memory = state.pools
    owned = [one for one in memory.pilots.values() if one.job is not None]
    for pilot in owned:
        if pilot.stage is not PilotStage.LEAVING:
            _follow(state, pilot)
    wanted = {
        one.job: one.worker
        for one in owned
        if one.job is not None and one.worker is not None and _takes_its_job(one)
    }
    changed = wanted.items() ^ memory.bound.items()
    memory.bound = wanted
    for job in {job for job, _ in changed}:
        _queue_again(state, job)


def note_starts(state: State) -> None:
    """Note which pilots have got their job; they take it once."""
    for pilot in state.pools.pilots.values():
        if pilot.job in state.pools.bound and not pilot.used:
            attempt = state.attempts.get(pilot.job)
            if attempt is not None and attempt.worker == pilot.worker:
                pilot.used = True
                state.pools.save(pilot)


def _follow(state: State, pilot: Pilot) -> None:
    assert pilot.job is not None
    attempt = state.attempts.get(pilot.job)
    if attempt is not None and attempt.worker == pilot.worker:
        return
    is_wanted = attempt is None and state.scheduler.waits(pilot.job)
    if pilot.used or not is_wanted:
        leaving.leave(state.pools, pilot)
    elif pilot.connected:
        job = state.jobs[pilot.job]
        words = _too_short(state, pilot, job) or _too_small(state, pilot, job)
        if words is not None:
            pool = state.pools.pools[pilot.pool]
            asking.job_refused(state.pools, pool, job.id, words, state.now_us)
            leaving.leave(state.pools, pilot)


def _too_short(state: State, pilot: Pilot, job: Job) -> str | None:
    """Say that a pilot was given less time than its job may take, if so."""
    needs_s = state.specs[job.spec].may_take_s
    if needs_s is None or pilot.ends_at is None:
        return None
    left_s = (pilot.ends_at - state.now_us) / _SECOND_US
    if left_s >= needs_s:
        return None
    words = f"a worker has {duration_text(left_s)} left, and job {job.id}"
    return f"{words} may take {duration_text(needs_s)}"


def _too_small(state: State, pilot: Pilot, job: Job) -> str | None:
    """Say what a pilot lacks that its job asks for: memory that no pool declares."""
    spec = state.specs[job.spec]
    words = state.scheduler.never_fits(
        job.queue,
        spec.request,
        worker=pilot.worker,
        labels=spec.all_labels | {pool_label(pilot.pool)},
        learned="" if spec.auto_vram else None,
    )
    return None if words is None else f"the worker that came is too small: {words}"


def _takes_its_job(pilot: Pilot) -> bool:
    return pilot.connected and pilot.stage is PilotStage.WORKING and not pilot.drained


def _queue_again(state: State, job: int) -> None:
    if state.scheduler.waits(job):
        state.scheduler.remove(job)
        eligibility.queue_job(state, state.jobs[job])
