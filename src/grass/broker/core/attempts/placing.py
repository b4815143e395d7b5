"""From a decision of the scheduler to an attempt, and to the `Start` of its worker.

Nothing here starts a process: a `Start` goes into the outbox and leaves once the
attempt is committed, unless the job was cancelled meanwhile. The rest of an attempt's
life cycle is in `tracking`.
"""

from operator import is_not

from msgspec.structs import replace

from grass.broker.core.attempts import avoided, held_back, tracking
from grass.broker.core.attempts.attempt_memory import AlikeStart
from grass.broker.core.jobs import eligibility
from grass.broker.core.state import State
from grass.link.messages import Recall, Start, ToWorker
from grass.model.ids import AttemptId
from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.jobs.spec import Spec, run_options
from grass.model.jobs.task_call import MOST_TOLD, TaskCall
from grass.model.queue import View
from grass.model.resources import units_json
from grass.scheduler import Placement

_NO_VIEW = View({})
MOST_SKIPPED = 100
"""How many numbers of a job attempts of a lost database may use on a worker."""


def place(state: State, placement: Placement, after: int | None = None) -> None:
    """Turn a decision of the scheduler into an attempt."""
    job = state.jobs[placement.job]
    worker = state.workers[placement.worker]
    job.attempts = _free_number(state, job, worker.id)
    job.started_at = state.now_us
    job.reason = None
    attempt = Attempt(
        job.id,
        job.attempts,
        worker.id,
        worker.boot,
        AttemptState.STARTING,
        placement.allocation,
        state.now_us,
        after=after,
    )
    state.attempts[job.id] = attempt
    _keep_what_runs(state, job, worker.id)
    state.move_job(job, JobState.RUNNING)
    state.save_attempt(attempt)
    units = units_json(placement.allocation)
    state.note("started", job.id, worker=worker.name, units=units)
    send_start(state, job, attempt)


def redirect(state: State, placement: Placement) -> bool:
    """Queue a job again that was placed on a worker which its kind avoids.

    Others that wait with it have been queued before that was known. So each time many
    of them are queued again as well.
    """
    job = state.jobs[placement.job]
    kind = avoided.kind_of(state, job, state.specs[job.spec])
    if kind is None:
        return False
    if avoided.is_tried(state, kind, placement.worker):
        held_back.tries_there(state, kind, placement.worker)
        return False
    if not avoided.is_avoided(state, kind, placement.worker):
        return False
    state.scheduler.release(job.id)
    eligibility.queue_job(state, job)
    waiting = state.scheduler.of_no_kind(job.id, eligibility.SLICE)
    others = [state.jobs[number] for number in waiting]
    others = [one for one in others if _is_of_kind(state, one, kind)]
    for other in others:
        state.scheduler.remove(other.id)
    eligibility.enter_all(state, others)
    state.avoided.redirected = True
    return True


def _is_of_kind(state: State, job: Job, kind: str) -> bool:
    return avoided.kind_of(state, job, state.specs[job.spec]) == kind


def _free_number(state: State, job: Job, worker: str) -> int:
    """Skip attempt numbers that an unknown attempt on this worker already uses.

    The worker would refuse the start. Where it names more such attempts than are
    skipped, it does refuse, and only its own starts suffer.
    """
    first = job.attempts + 1
    if not state.foreign:
        return first
    for number in range(first, first + MOST_SKIPPED):
        name = str(AttemptId(state.cluster, job.id, number))
        if (worker, name) not in state.foreign:
            return number
    return first


def _keep_what_runs(state: State, job: Job, worker: str) -> None:
    """Keep the queue's part of the command with the job: the queue may change later."""
    spec, view = state.specs[job.spec], _view(state, job, worker)
    cwd = None if spec.cwd else view.cwd
    if (spec.prefix, spec.queue_cwd) != (view.prefix, cwd):
        number = state.specs.acquire(replace(spec, prefix=view.prefix, queue_cwd=cwd))
        state.specs.release(job.spec)
        state.note_before(job)
        job.change(spec=number)


def _view(state: State, job: Job, worker: str) -> View:
    queue = state.queues.get(job.queue)
    return queue.views.get(worker, _NO_VIEW) if queue else _NO_VIEW


def send_start(state: State, job: Job, attempt: Attempt) -> None:
    """Send the start of an attempt to its worker; a repeated start is harmless."""
    state.batch.send(attempt.worker, start_of(state, job, attempt))


def start_of(state: State, job: Job, attempt: Attempt) -> Start:
    """Return the start of an attempt."""
    predecessor = None if attempt.after is None else state.attempts.get(attempt.after)
    return replace(
        _start_of_alike(state, job, attempt),
        attempt=state.attempt_id(attempt),
        job=job.id,
        number=attempt.number,
        name=job.name,
        allocation=attempt.allocation,
        index=job.index,
        params=job.params,
        after=None if predecessor is None else state.attempt_id(predecessor),
        placed_at=attempt.started_at,
        arguments=job.arguments,
        arguments_blob=job.arguments_blob,
    )


def _start_of_alike(state: State, job: Job, attempt: Attempt) -> Start:
    """Return what starts of jobs that are alike have in common, made once for many."""
    spec = state.specs[job.spec]
    view = _view(state, job, attempt.worker)
    has_files = _has_callers_files(state, spec, attempt)
    may_return = len(state.workers) > 1 or bool(state.pools.pools)
    # All of these are replaced when they change, so being the same is being equal.
    made_of = job.common, spec, view
    last = state.last_start
    if (
        last is None
        or any(map(is_not, last.made_of, made_of))
        or (last.has_files, last.may_return) != (has_files, may_return)
    ):
        start = _composed(state, job, view, has_files=has_files)
        start = replace(start, may_return=may_return)
        last = state.last_start = AlikeStart(made_of, has_files, may_return, start)
    return last.start


def _composed(state: State, job: Job, view: View, *, has_files: bool) -> Start:
    """Compose a start, without what is of one attempt alone."""
    spec = state.specs[job.spec]
    own = {} if has_files else _without_callers_files(spec)
    return Start(
        attempt="",
        job=0,
        number=0,
        name="",
        project=job.project,
        words=job.words,
        shell=job.shell,
        allocation={},
        prefix=view.prefix,
        cwd=spec.cwd or view.cwd,
        base_env=_base_env(state, spec) if has_files else None,
        queue_env=view.env,
        learns=spec.auto_vram or spec.job_type is not None,
        owner=job.owner,
        queue=job.queue,
        array=job.array,
        most_told=0 if spec.task is None else MOST_TOLD,
        **(run_options(spec) | own),
    )


def _without_callers_files(spec: Spec) -> dict[str, TaskCall]:
    """Return a task without the caller's Python, which is on another machine."""
    return {} if spec.task is None else {"task": replace(spec.task, interpreter="")}


def _base_env(state: State, spec: Spec) -> dict[str, str] | None:
    """Return the caller's environment, which goes where the caller's files are."""
    return None if spec.base_env is None else state.envs.get(spec.base_env)


def _has_callers_files(state: State, spec: Spec, attempt: Attempt) -> bool:
    """Tell whether an attempt is on the caller's machine, or shares its files.

    Where several brokers share a store, another one may lead than the caller spoke to.
    """
    worker, flags = attempt.worker, state.daemon
    home = state.moved_from if flags.shared else flags.home_worker
    origin = spec.origin or home
    return worker == origin or state.pools.shares_home(worker)


def unless_obsolete(state: State, worker: str, message: ToWorker) -> ToWorker:
    """Replace a start that this batch made needless by a recall.

    The caller that cancelled the job is answered that it does not start any more. An
    attempt that its worker returned may be on another one by now, under the same name.
    """
    if not isinstance(message, Start):
        return message
    found = tracking.live(state, message.attempt)
    wanted = found is not None and _is_wanted(*found, worker, message.placed_at)
    return message if wanted else Recall([message.attempt], [message.placed_at])


def _is_wanted(job: Job, attempt: Attempt, worker: str, placed_at: int) -> bool:
    is_there = attempt.worker == worker and tracking.is_about(attempt, placed_at)
    return is_there and job.stopping_since is None
