"""Taking new jobs in.

Everything is checked before anything is changed: a call with one bad job among ten
thousand adds none. Jobs that share settings share one checked spec.
"""

from msgspec.structs import replace

from grass.broker import arrivals, queues
from grass.broker.arrivals import Arrival, Prepared
from grass.broker.calls import Enqueue, Enqueued, NewJob, Settings
from grass.broker.state import State
from grass.errors import NeverFits, Refused, UsageError
from grass.model import placeholders
from grass.model.commands import split_assignments
from grass.model.job import DEFAULT_MAX_OUTPUT, DEFAULT_QUEUE, Spec
from grass.model.queue import Queue
from grass.model.resources import ONE_CPU, Request, check_name

LARGEST_PRIORITY = 1_000_000


def enqueue(state: State, call: Enqueue) -> Enqueued | Arrival:
    """Add all jobs of a call, or raise and add none.

    A large call is answered with its arrival: it is under way, and durable later.
    """
    if call.key is not None and (known := _known_call(state, call)) is not None:
        return known
    if not call.jobs:
        raise UsageError("no jobs were given", "give a command, or lines with --from")
    prepared = _prepared(state, call)
    for job in call.jobs:
        _check_command(job, prepared[id(job.settings)])
    if call.base_env is not None:
        prepared = _with_environment(state, call.actor, call.base_env, prepared)
    arrival = arrivals.begin(state, call, prepared)
    if arrivals.done(arrival):
        return arrivals.reply(arrival, _gpu_hint(state, prepared))
    state.arriving.append(arrival)
    return arrival


def _known_call(state: State, call: Enqueue) -> Enqueued | Arrival | None:
    """Find what a repeated call was, or will be, answered with."""
    for arrival in state.arriving:
        if arrival.call.key == call.key and arrival.call.actor == call.actor:
            return arrival
    earlier = state.calls.get(call.key or "")
    if earlier is None:
        return None
    if earlier.actor != call.actor:
        raise Refused("this idempotency key belongs to somebody else")
    return Enqueued(earlier.first_job, earlier.last_job)


def _prepared(state: State, call: Enqueue) -> dict[int, Prepared]:
    found: dict[int, Prepared] = {}
    for job in call.jobs:
        if id(job.settings) not in found:
            found[id(job.settings)] = _prepare(state, job.settings)
    return found


def _with_environment(
    state: State, owner: str, env: dict[str, str], prepared: dict[int, Prepared]
) -> dict[int, Prepared]:
    """Store the caller's environment; only now, when nothing can be refused any more.

    One that no job uses would be pruned from the store, but not from memory.
    """
    if state.envs.crowded:
        state.envs.keep_only(state.specs.base_envs())
    number = state.envs.number(owner, env)
    return {
        key: one._replace(spec=replace(one.spec, base_env=number))
        for key, one in prepared.items()
    }


def _prepare(state: State, settings: Settings) -> Prepared:
    queue = queues.find(state, settings.queue or DEFAULT_QUEUE)
    check_name(settings.project, "project")
    if abs(settings.priority) > LARGEST_PRIORITY:
        raise UsageError(f"priority {settings.priority} is out of range")
    request = _request(queue, settings)
    problem = state.scheduler.never_fits(queue.name, request)
    if problem is not None:
        raise NeverFits(problem, "see `grass show` for what there is")
    spec = _spec(queue, settings, request)
    kinds = _known_kinds(state)
    if not settings.raw:
        texts = [value for _, value in settings.env]
        texts += [text for text in (spec.cwd, spec.output, spec.stderr) if text]
        placeholders.check(texts, request, kinds)
    return Prepared(queue.name, queue.prefix, request, spec, kinds)


def _request(queue: Queue, settings: Settings) -> Request:
    if settings.request is not None:
        return settings.request
    return ONE_CPU if queue.default_request is None else queue.default_request


def _spec(queue: Queue, settings: Settings, request: Request) -> Spec:
    limit = settings.max_output
    return Spec(
        request=request,
        cwd=settings.cwd or (None if queue.prefix else settings.caller_cwd),
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
    if not prepared.prefix:
        _, program = split_assignments(job.words)
        if not program or not program[0]:
            raise UsageError("no command was given", "grass enqueue -- python train.py")
    if "\0" in "".join(job.words):
        raise UsageError("a command cannot hold a NUL byte")
    if not job.settings.raw:
        placeholders.check(job.words, prepared.request, prepared.known_kinds)


def _gpu_hint(state: State, prepared: dict[int, Prepared]) -> str:
    has_gpus = any("gpu" in worker.found for worker in state.workers.values())
    kinds = {kind for one in prepared.values() for kind, _ in one.request}
    if not has_gpus or "gpu" in kinds or "vram" in kinds:
        return ""
    return "this job sees no GPU; ask for one with -g 1"
