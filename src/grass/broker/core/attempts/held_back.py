"""Workers where jobs of a kind fail at once, though they run elsewhere.

Such a worker is free again at once, and would take one job after the other. So after
several failures in a row jobs of that kind avoid it (`avoided`), while another worker
that could run them is connected. After a pause one job tries whether it runs there now.
Other jobs are not concerned. Kept in memory alone.
"""

from grass.broker.core.attempts import avoided
from grass.broker.core.attempts.attempt_memory import WorkerEnds
from grass.broker.core.state import State
from grass.broker.core.workers import registry
from grass.link.messages import Exited
from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.lifecycle import AttemptState, JobState

QUICK_S = 2.0
"""A job that fails within this time fails at once."""
FAILURES_IN_A_ROW = 3
"""So many jobs of a kind have to fail at once."""
LEAST_S = 0.02
LONGER = 3.0
"""A job runs elsewhere that has run for so long, and so much longer than they did."""
LOOK_PAUSE_US = 10_000
"""How often the running attempts are looked through for a kind that fails on."""
MAX_KINDS = 1000
"""Of more the oldest are forgotten."""


def ended(
    state: State, job: Job, attempt: Attempt, message: Exited, end: JobState
) -> None:
    """Count how a job has ended on its worker, where there are several."""
    if len(state.workers) < 2 or state.specs[job.spec].guest is not None:
        return
    if end is JobState.SUCCEEDED:
        kind = avoided.name_of(state, job)
        _ends(state, kind)[attempt.worker] = WorkerEnds(succeeded=True)
        avoided.runs_again(state, kind, attempt.worker)
    elif end is JobState.FAILED and _is_at_once(message):
        _count(state, job, attempt.worker, message.ran_s or 0.0)


def _is_at_once(message: Exited) -> bool:
    """Return whether a program failed by itself, soon after it began."""
    by_itself = message.reason is None and not message.cause and not message.blamed
    return by_itself and message.ran_s is not None and message.ran_s < QUICK_S


def _ends(state: State, kind: str) -> dict[str, WorkerEnds]:
    kinds = state.avoided.ends
    if kind not in kinds and len(kinds) >= MAX_KINDS:
        del kinds[next(iter(kinds))]
    return kinds.setdefault(kind, {})


def _count(state: State, job: Job, worker: str, ran_s: float) -> None:
    kind = avoided.name_of(state, job)
    here = _ends(state, kind).setdefault(worker, WorkerEnds())
    here.succeeded = False
    here.failed[job.id] = ran_s
    if len(here.failed) > FAILURES_IN_A_ROW:
        del here.failed[next(iter(here.failed))]
    if len(here.failed) < FAILURES_IN_A_ROW or avoided.is_avoided(state, kind, worker):
        return
    # The clock may have been set back.
    last = here.looked_us
    if last is not None and 0 <= state.now_us - last < LOOK_PAUSE_US:
        return
    here.looked_us = state.now_us
    longer_s = max(LEAST_S, LONGER * max(here.failed.values()))
    elsewhere = _elsewhere(state, job, worker, longer_s)
    if elsewhere is not None:
        _hold_back(state, job, kind, worker, elsewhere)


def _hold_back(state: State, job: Job, kind: str, worker: str, elsewhere: str) -> None:
    where = f"and run on `{registry.name_of(state, elsewhere)}`"
    times = f"{FAILURES_IN_A_ROW} jobs like it in a row failed there"
    reason = f"{times} within {QUICK_S:.0f} s, {where}"
    avoided.hold_back(state, job, kind, worker, elsewhere, reason)
    name, jobs = registry.name_of(state, worker), job.common.name
    state.note("worker-held-back", worker=worker, name=name, jobs=jobs, reason=reason)


def _elsewhere(state: State, job: Job, worker: str, longer_s: float) -> str | None:
    """Return another worker that could run a job, and runs others of its kind.

    None where some run on this worker as well.
    """
    kind = avoided.name_of(state, job)
    found = [one for one, ends in state.avoided.ends[kind].items() if ends.succeeded]
    running = _running_on(state, job, kind, longer_s)
    if worker in running:
        return None
    hosts = avoided.hosts(state, job)
    found += sorted(running)
    return next((one for one in found if one in hosts and _is_open(state, one)), None)


def _running_on(state: State, job: Job, kind: str, longer_s: float) -> set[str]:
    """Return the workers where other jobs of a kind have run for longer than this."""
    others = (one for one in state.attempts.values() if one.job != job.id)
    return {one.worker for one in others if _runs(state, one, kind, longer_s)}


def _runs(state: State, attempt: Attempt, kind: str, longer_s: float) -> bool:
    """Return whether an attempt of a kind has run for longer than this."""
    lasted_us = state.now_us - attempt.started_at
    if attempt.state is not AttemptState.RUNNING or lasted_us <= longer_s * 1_000_000:
        return False
    return avoided.name_of(state, state.jobs[attempt.job]) == kind


def fails_at_once(state: State, job: Job, worker: str) -> bool:
    """Return whether the last job of a kind on a worker failed at once."""
    if not state.avoided.ends:
        return False
    ends = state.avoided.ends.get(avoided.name_of(state, job), {}).get(worker)
    return ends is not None and bool(ends.failed)


def _is_open(state: State, worker: str) -> bool:
    known = state.workers.get(worker)
    return known is not None and known.connected and not known.draining


def tries_there(state: State, kind: str, worker: str) -> None:
    """Let one job try a worker that was held back; all, if others run there by now."""
    there = state.attempts_on(worker)
    if any(_runs(state, one, kind, QUICK_S) for one in there):
        avoided.runs_again(state, kind, worker)
    else:
        avoided.renew(state, kind, worker)
