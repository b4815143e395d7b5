"""Taking new jobs in.

Everything is checked before anything is changed: a call with one bad job among ten
thousand adds none. Jobs that share settings share one checked spec.
"""

from typing import NamedTuple

from grass.broker import queues
from grass.broker.calls import Enqueue, Enqueued, NewJob, Settings
from grass.broker.state import State
from grass.errors import NeverFits, Refused, UsageError
from grass.model import placeholders
from grass.model.commands import default_name, is_shell_line, split_assignments
from grass.model.job import DEFAULT_MAX_OUTPUT, DEFAULT_QUEUE, Job, Spec
from grass.model.lifecycle import JobState
from grass.model.queue import Queue
from grass.model.resources import ONE_CPU, Request, check_name
from grass.store.changes import Call

LARGEST_PRIORITY = 1_000_000


class Prepared(NamedTuple):
    """Settings that were checked once for all jobs that share them."""

    queue: Queue
    request: Request
    spec: Spec
    known_kinds: frozenset[str]


def enqueue(state: State, call: Enqueue) -> Enqueued:
    """Add all jobs of a call, or raise and add none."""
    if call.key is not None and (earlier := state.calls.get(call.key)) is not None:
        if earlier.actor != call.actor:
            raise Refused("this idempotency key belongs to somebody else")
        return Enqueued(earlier.first_job, earlier.last_job)
    if not call.jobs:
        raise UsageError("no jobs were given", "give a command, or lines with --from")
    prepared = _prepared(state, call)
    for job in call.jobs:
        _check_command(job, prepared[id(job.settings)])
    return _add(state, call, prepared)


def _prepared(state: State, call: Enqueue) -> dict[int, Prepared]:
    base_env = None
    if state.envs.crowded:
        state.envs.keep_only(state.specs.base_envs())
    if call.base_env is not None:
        base_env = state.envs.number(call.actor, call.base_env)
    found: dict[int, Prepared] = {}
    for job in call.jobs:
        if id(job.settings) not in found:
            found[id(job.settings)] = _prepare(state, job.settings, base_env)
    return found


def _prepare(state: State, settings: Settings, base_env: int | None) -> Prepared:
    queue = queues.find(state, settings.queue or DEFAULT_QUEUE)
    check_name(settings.project, "project")
    if abs(settings.priority) > LARGEST_PRIORITY:
        raise UsageError(f"priority {settings.priority} is out of range")
    request = _request(queue, settings)
    problem = state.scheduler.never_fits(queue.name, request)
    if problem is not None:
        raise NeverFits(problem, "see `grass show` for what there is")
    spec = _spec(queue, settings, request, base_env)
    kinds = _known_kinds(state)
    if not settings.raw:
        texts = [value for _, value in settings.env]
        texts += [text for text in (spec.cwd, spec.output, spec.stderr) if text]
        placeholders.check(texts, request, kinds)
    return Prepared(queue, request, spec, kinds)


def _request(queue: Queue, settings: Settings) -> Request:
    if settings.request is not None:
        return settings.request
    return ONE_CPU if queue.default_request is None else queue.default_request


def _spec(
    queue: Queue, settings: Settings, request: Request, base_env: int | None
) -> Spec:
    limit = settings.max_output
    return Spec(
        request=request,
        cwd=settings.cwd or (None if queue.prefix else settings.caller_cwd),
        base_env=base_env,
        env=settings.env,
        umask=settings.umask,
        output=settings.output,
        stderr=settings.stderr,
        max_output=DEFAULT_MAX_OUTPUT if limit is None else limit,
        raw=settings.raw,
        pin=settings.pin,
    )


def _known_kinds(state: State) -> frozenset[str]:
    views = [view for queue in state.queues.values() for view in queue.views.values()]
    kinds = [kind for view in views for kind in view.capacity]
    kinds += [kind for worker in state.workers.values() for kind in worker.found]
    return frozenset(["gpu", *kinds])


def _check_command(job: NewJob, prepared: Prepared) -> None:
    if not prepared.queue.prefix:
        _, program = split_assignments(job.words)
        if not program or not program[0]:
            raise UsageError("no command was given", "grass enqueue -- python train.py")
    if any("\0" in word for word in job.words):
        raise UsageError("a command cannot hold a NUL byte")
    if not job.settings.raw:
        placeholders.check(job.words, prepared.request, prepared.known_kinds)


def _add(state: State, call: Enqueue, prepared: dict[int, Prepared]) -> Enqueued:
    first = state.last_job + 1
    numbers = {key: state.specs.number(one.spec) for key, one in prepared.items()}
    for offset, new in enumerate(call.jobs):
        known = prepared[id(new.settings)]
        job = _job(first + offset, new, known, numbers[id(new.settings)], state, call)
        state.jobs[job.id] = job
        state.changes.jobs[job.id] = job
        state.specs.use(job.spec)
        state.scheduler.enqueue(job.id, job.queue, known.request, job.priority)
    last = first + len(call.jobs) - 1
    state.last_job = last
    state.counts[JobState.QUEUED] += len(call.jobs)
    state.changes.meta["last_job"] = str(last)
    state.note_by(call.actor, "enqueued", first, last=last)
    if call.key is not None:
        answered = Call(call.key, call.actor, first, last, state.now_us)
        state.calls[call.key] = answered
        state.changes.calls.append(answered)
    return Enqueued(first, last, _gpu_hint(state, prepared))


def _job(
    number: int, new: NewJob, known: Prepared, spec: int, state: State, call: Enqueue
) -> Job:
    settings, prefix = new.settings, known.queue.prefix
    shell = new.shell
    if shell is None:
        shell = not prefix and is_shell_line(new.words)
    name = new.name or settings.name or default_name(prefix or new.words)
    return Job(
        number,
        spec,
        new.words,
        shell,
        name.encode("utf-8", "replace").decode(),
        settings.project,
        call.actor,
        known.queue.name,
        settings.priority,
        JobState.QUEUED,
        state.now_us,
    )


def _gpu_hint(state: State, prepared: dict[int, Prepared]) -> str:
    has_gpus = any("gpu" in worker.found for worker in state.workers.values())
    kinds = {kind for one in prepared.values() for kind, _ in one.request}
    if not has_gpus or "gpu" in kinds or "vram" in kinds:
        return ""
    return "this job sees no GPU; ask for one with -g 1"
