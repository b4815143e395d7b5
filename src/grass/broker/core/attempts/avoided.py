"""Workers that jobs of a kind are not placed on, as something is missing there.

A worker returns a start whose directory, program or script it does not have. That
concerns all jobs that name the same: those of one queue, directory, environment and
program are of one *kind*. So a worker without a directory costs an array the starts
that were under way, not one for each member. Where the missing path is filled in for
each job, the job is of a kind of its own.

A worker is tried again when it has been away, when a person resumes it, and after a
pause that doubles each time. The worker of a pilot speaks for its pool, whose next one
would be like it. A job has failed once every worker that could run it has returned it.
"""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from grass.broker.core.attempts.attempt_memory import Avoidance
from grass.broker.core.pools.pool_memory import placeholder
from grass.broker.core.state import State
from grass.broker.core.workers import registry
from grass.link.messages import Returned
from grass.model.jobs.commands import split_assignments
from grass.model.jobs.default_names import script_of
from grass.model.jobs.job import Job, Return
from grass.model.jobs.job_types import learned_type
from grass.model.jobs.spec import Spec

FIRST_PAUSE_US = 60 * 1_000_000
LONGEST_PAUSE_US = 15 * 60 * 1_000_000
MAX_KINDS = 10_000
"""Of more the oldest are forgotten, and their workers tried again."""
MAX_NAMED = 20
"""How many workers a failure names."""
_PREFIX = "could not start: "


def kind_of(state: State, job: Job, spec: Spec) -> str | None:
    """Return the kind of a job that avoids workers; None: it avoids none."""
    memory = state.avoided
    if not memory.kinds:
        return None
    kind = memory.of_jobs.get(job.id) or name_of(state, job)
    return kind if kind in memory.kinds else None


def name_of(state: State, job: Job) -> str:
    """Return the kind of a job, found once for many that are alike."""
    spec, last = state.specs[job.spec], state.avoided.last_name
    if last is None or last[0] is not job.common or last[1] is not spec:
        last = state.avoided.last_name = job.common, spec, kind_name(job, spec)
    return last[2]


def kind_to_queue(state: State, job: Job, spec: Spec) -> str | None:
    """Return the kind of a job that is queued; one worker at least may be tried."""
    kind = kind_of(state, job, spec)
    if kind is not None:
        found = hosts(state, job)
        if found <= reasons(state, job).keys():
            # Others have been returned. This would wait, and not fail as they did.
            for worker in found:
                _end(state, kind, worker)
    return kind


def reasons(state: State, job: Job) -> dict[str, str]:
    """Return why a job is not placed on workers, by worker."""
    kind = kind_of(state, job, state.specs[job.spec])
    known = {} if kind is None else state.avoided.kinds[kind]
    return {worker: one.reason for worker, one in known.items() if not one.over}


def note_return(state: State, job: Job, worker: str, message: Returned) -> None:
    """Note that something is missing on a worker which a job needs."""
    reason = message.reason.removeprefix(_PREFIX)
    others = (one for one in job.returns if one.worker != worker)
    job.returns = (*others, Return(worker, reason, message.missing))
    _note(state, job, job.returns[-1])


def restore(state: State, jobs: Iterable[Job]) -> None:
    """Note after a restart which workers have returned these jobs."""
    for job in jobs:
        for one in job.returns:
            _note(state, job, one)


def _note(state: State, job: Job, returned: Return) -> None:
    memory, spec = state.avoided, state.specs[job.spec]
    kind = memory.of_jobs.get(job.id)
    if kind is None:
        kind = name_of(state, job)
        if not _is_of_all(job, spec, returned.missing):
            kind = _own_kind(state, job, kind)
    for worker in _with_pool(state, returned.worker):
        _avoid(state, kind, job.queue, worker, returned.reason)
    while len(memory.kinds) > MAX_KINDS:
        _drop(state, next(iter(memory.kinds)))


def _with_pool(state: State, worker: str) -> list[str]:
    """Return a worker, and the one that may come of its pool, if it is in one."""
    pool = state.pools.pool_of(worker)
    return [worker] if pool is None else [worker, placeholder(pool)]


def kind_name(job: Job, spec: Spec) -> str:
    """Return what has to be found where a job starts."""
    assignments, words = split_assignments(job.words)
    words = (*spec.prefix, *words)
    script = script_of(words) if words and not job.shell else None
    program = "" if spec.prefix or job.shell or not words else words[0]
    path = dict((*spec.env, *assignments)).get("PATH", "")
    where = job.queue, spec.cwd or "", str(spec.base_env), path
    interpreter = "" if spec.task is None else spec.task.interpreter
    return "\0".join((*where, program, script or "", interpreter))


def _is_of_all(job: Job, spec: Spec, missing: str) -> bool:
    """Return whether a path is the same for all jobs of a kind."""
    texts = (spec.cwd or "", spec.queue_cwd or "", *spec.prefix, *job.words)
    is_plain = spec.raw or spec.verbatim or spec.task is not None or missing in texts
    return is_plain or not any("{" in text for text in texts)


def _own_kind(state: State, job: Job, kind: str) -> str:
    memory = state.avoided
    own = memory.of_jobs[job.id] = f"{kind}\0{job.id}"
    for worker, one in memory.kinds.get(kind, {}).items():
        if not one.over:
            _avoid(state, own, job.queue, worker, one.reason)
    return own


def hold_back(
    state: State, job: Job, kind: str, worker: str, elsewhere: str, reason: str
) -> None:
    """Avoid a worker where jobs of a kind fail that run elsewhere."""
    _avoid(state, kind, job.queue, worker, reason)
    one = state.avoided.kinds[kind][worker]
    one.elsewhere, one.jobs = elsewhere, job.common.name


def renew(state: State, kind: str, worker: str) -> None:
    """Avoid a worker again that a job tries now, for a longer time."""
    before = state.avoided.kinds[kind][worker]
    _avoid(state, kind, state.avoided.queues[kind], worker, before.reason)
    one = state.avoided.kinds[kind][worker]
    one.elsewhere, one.jobs = before.elsewhere, before.jobs


def runs_again(state: State, kind: str, worker: str) -> None:
    """Avoid a worker no more where jobs of a kind had failed."""
    one = state.avoided.kinds.get(kind, {}).get(worker)
    if one is not None and one.elsewhere:
        _end(state, kind, worker)
        del state.avoided.kinds[kind][worker]


def no_host_now(state: State, worker: str) -> None:
    """Hold no other worker back for the sake of this one."""
    kinds = state.avoided.kinds.items()
    found = [
        (kind, other)
        for kind, workers in kinds
        for other, one in workers.items()
        if one.elsewhere == worker
    ]
    for kind, other in found:
        runs_again(state, kind, other)


def held_back(state: State, worker: str) -> list[Avoidance]:
    """Return which jobs fail at once on a worker, and so are not placed there."""
    return [one for _, who, one in _active(state) if who == worker and one.elsewhere]


def _avoid(state: State, kind: str, queue: str, worker: str, reason: str) -> None:
    memory = state.avoided
    workers, memory.queues[kind] = memory.kinds.setdefault(kind, {}), queue
    known = workers.get(worker)
    if known is not None and not known.over:
        # It was sent together with one that has been returned.
        return
    times = 0 if known is None else known.times + 1
    until = state.now_us + min(LONGEST_PAUSE_US, FIRST_PAUSE_US << min(times, 10))
    workers[worker] = Avoidance(reason, state.last_job, until, times)
    memory.next_us = until if memory.next_us is None else min(memory.next_us, until)
    state.scheduler.set_avoided(worker, kind, queue, True)


def is_avoided(state: State, kind: str, worker: str) -> bool:
    """Return whether jobs of a kind are not placed on a worker."""
    known = state.avoided.kinds.get(kind, {}).get(worker)
    return known is not None and not known.over


def is_tried(state: State, kind: str, worker: str) -> bool:
    """Return whether one job is to try a worker where others have failed."""
    known = state.avoided.kinds[kind].get(worker)
    return known is not None and known.over and bool(known.elsewhere)


def try_older(state: State, job: Job) -> None:
    """Try workers again that returned others before this job was enqueued."""
    kind = kind_of(state, job, state.specs[job.spec])
    for worker, one in list(state.avoided.kinds.get(kind or "", {}).items()):
        if one.last_job < job.id and kind is not None:
            _end(state, kind, worker)


def has_host(state: State, job: Job) -> bool:
    """Return whether a worker could run a job, here or away, that did not return it."""
    return not hosts(state, job) <= _lacking(state, job).keys()


def _lacking(state: State, job: Job) -> dict[str, str]:
    """Return the workers that have returned a job or others like it, and why."""
    kind = kind_of(state, job, state.specs[job.spec])
    known = state.avoided.kinds.get(kind or "", {})
    return {
        worker: one.reason
        for worker, one in known.items()
        if not one.over and not one.elsewhere
    }


def hosts(state: State, job: Job) -> set[str]:
    """Return the workers that could run a job when empty, here or away."""
    spec = state.specs[job.spec]
    found = state.scheduler.hosts(
        job.queue,
        spec.request,
        worker=spec.worker,
        labels=spec.all_labels,
        gpu_model=spec.gpu_model,
        learned=learned_type(spec, job),
        time_s=spec.rounded_time_s,
    )
    return set(found)


def failure(state: State, job: Job, last: str) -> str:
    """Return why no worker can start a job; the last may be tried for the next one."""
    why, suited = _lacking(state, job), hosts(state, job)
    where: dict[str, list[str]] = {}
    for worker in [one for one in why if one in state.workers and one in suited]:
        name = f"`{registry.name_of(state, worker)}`"
        where.setdefault(why[worker], []).append(name)
    texts = [f"on {_listed(names)}: {reason}" for reason, names in where.items()]
    job.returns = tuple(one for one in job.returns if one.worker != last)
    kind = kind_of(state, job, state.specs[job.spec])
    for worker in _with_pool(state, last):
        if kind is not None:
            _end(state, kind, worker)
    if any(reason.startswith("directory ") for reason in where):
        texts.append("`--cwd` names another one")
    return f"could not start {'; '.join(texts)}"


def _listed(names: list[str]) -> str:
    if len(names) > MAX_NAMED:
        return f"{', '.join(names[:MAX_NAMED])} and {len(names) - MAX_NAMED} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def began(state: State, job: Job, worker: str) -> None:
    """Note that a job runs on a worker, which lacks nothing of its kind then."""
    if job.returns:
        job.returns = ()
        state.save_job(job)
    kind = kind_of(state, job, state.specs[job.spec])
    known = state.avoided.kinds.get(kind or "", {}).get(worker)
    if kind is not None and known is not None and not known.elsewhere:
        _end(state, kind, worker)
        del state.avoided.kinds[kind][worker]


def due(state: State) -> None:
    """Let workers be tried again whose pause is over."""
    memory, now = state.avoided, state.now_us
    latest = now + LONGEST_PAUSE_US
    if memory.next_us is None or now < memory.next_us <= latest:
        return
    for kind, worker, one in list(_active(state)):
        # The clock may have been set back.
        if not now < one.until_us <= latest:
            _end(state, kind, worker)
    memory.next_us = min((one.until_us for _, _, one in _active(state)), default=None)


def _active(state: State) -> Iterator[tuple[str, str, Avoidance]]:
    for kind, workers in state.avoided.kinds.items():
        for worker, one in workers.items():
            if not one.over:
                yield kind, worker, one


def connected(state: State, worker: str) -> None:
    """Try a worker again that was away: it may have what was missing."""
    if worker in state.avoided.gone:
        state.avoided.gone.discard(worker)
        try_again(state, worker)


def try_again(state: State, worker: str) -> bool:
    """Forget what is missing or fails on a worker; return whether something was."""
    for ends in state.avoided.ends.values():
        ends.pop(worker, None)
    found = [kind for kind, other, _ in _active(state) if other == worker]
    for kind in found:
        _end(state, kind, worker)
        del state.avoided.kinds[kind][worker]
    return bool(found)


def _end(state: State, kind: str, worker: str) -> None:
    memory = state.avoided
    one = memory.kinds[kind].get(worker)
    if one is not None and not one.over:
        memory.kinds[kind][worker] = replace(one, over=True)
        state.scheduler.set_avoided(worker, kind, memory.queues[kind], False)


def forget_kind(state: State, job: Job) -> None:
    """Try all workers again, as a person wants a job of this kind to run again."""
    kind = kind_of(state, job, state.specs[job.spec])
    if kind is not None:
        _drop(state, kind)


def leave(state: State, job: Job) -> None:
    """Forget who has returned a job, which has ended or may be of another kind now."""
    job.returns = ()
    kind = state.avoided.of_jobs.pop(job.id, None)
    if kind is not None:
        _drop(state, kind)


def _drop(state: State, kind: str) -> None:
    for worker in state.avoided.kinds.get(kind, {}):
        _end(state, kind, worker)
    state.avoided.kinds.pop(kind, None)
    state.avoided.queues.pop(kind, None)
