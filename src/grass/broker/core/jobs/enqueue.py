"""Adding new jobs.

Everything is checked before anything is changed: a call with one bad job among ten
thousand adds none. Jobs that share a patch share one checked spec.
"""

from msgspec import UNSET
from msgspec.structs import replace

from grass.broker.core.calls import Enqueue, Enqueued, Found, NewJob
from grass.broker.core.jobs import (
    bulk_enqueue,
    dependency_graph,
    enforcing,
    enqueue_hints,
    queues,
)
from grass.broker.core.jobs.bulk_enqueue import Arrival, Prepared, is_for_a_shell
from grass.broker.core.state import State
from grass.broker.core.workers import registry
from grass.errors import About, GrassError, Refused, UsageError
from grass.model.access import Right, actor_of, rights_of
from grass.model.field_readers import PTY
from grass.model.jobs import placeholders
from grass.model.jobs.commands import UNCHECKED_LENGTH, check_size, split_assignments
from grass.model.jobs.job import DEFAULT_QUEUE
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.params import Params, check_kinds
from grass.model.jobs.signals import check_limit_signal
from grass.model.jobs.spec import (
    CHANNEL,
    NO_INPUT,
    JobPatch,
    Spec,
    changed,
    least_request,
)
from grass.model.queue import Queue
from grass.model.resources import GPU_KINDS, ONE_CPU, split_auto
from grass.store.changes import AnsweredCall

LONG_VALUES = 1000
"""In characters: values of a job that make no command too large."""


def enqueue(state: State, call: Enqueue) -> Enqueued | Arrival:
    """Add all jobs of a call, or raise and add none.

    A large call is answered with its arrival: it is under way, and durable later.
    """
    if call.key is not None and (known := _known_call(state, call)) is not None:
        return known
    prepared, ends = checked_call(state, call)
    if call.base_env is not None:
        prepared = _with_environment(state, call.actor, call.base_env, prepared)
    hint = enqueue_hints.hints(state, prepared.values())
    arrival = bulk_enqueue.begin(state, call, prepared, ends, hint)
    if arrival.finished:
        return arrival.enqueued
    state.bulk.enqueues.append(arrival)
    return arrival


def checked_call(
    state: State, call: Enqueue
) -> tuple[dict[int, Prepared], dict[int, JobState]]:
    """Check all jobs of a call; return their specs by patch, and ends of others."""
    if not call.jobs:
        raise UsageError("no jobs were given", "give a command, or lines with --from")
    ends = ends_of(call.found)
    prepared = _prepared(state, call, ends)
    afters = (one.spec.after for one in prepared.values())
    dependency_graph.check_room(state, call.actor, afters)
    _check_commands(call, prepared)
    if call.base_env is not None:
        check_size((), tuple(call.base_env.items()))
    return prepared, ends


def _check_commands(call: Enqueue, prepared: dict[int, Prepared]) -> None:
    before: NewJob | None = None
    for job in call.jobs:
        known = prepared[id(job.patch)]
        try:
            if before is None or not _same_command(job, before):
                with About("command"):
                    check_words(job.words, known)
                    name = job.name or job.patch.name or ""
                    check_positions((*job.words, name), known.spec, job.params or {})
                if known.spec.shell_program is not None:
                    _check_shell(job, known)
        except UsageError as error:
            raise _naming(job, call, error) from None
        if job.params:
            _check_row(job, known)
        before = job


def check_positions(texts: tuple[str, ...], spec: Spec, params: Params) -> None:
    """Refuse texts of a job, and of its spec, that name a value it is not given."""
    if params and not (spec.raw or spec.verbatim):
        others = [text for found in _texts(spec).values() for text in found]
        placeholders.check_positions((*texts, *others), params)


def _check_row(job: NewJob, known: Prepared) -> None:
    try:
        check_params(job.params or {}, job.words, known, is_for_a_shell(job, known))
    except UsageError as error:
        error.job = job.index
        raise


def _same_command(job: NewJob, other: NewJob) -> bool:
    """Return whether two jobs are members of one array."""
    return job.words is other.words and job.patch is other.patch


def check_params(
    params: Params, words: tuple[str, ...], prepared: Prepared, shell: bool
) -> None:
    """Refuse parameters that a command cannot be filled with."""
    asked = {kind for kind, _ in least_request(prepared.spec)}
    check_kinds(params, prepared.known_kinds | asked)
    if prepared.spec.raw or prepared.spec.verbatim:
        return
    if shell:
        placeholders.check_quoted(words[-1], params)
    if sum(map(len, params.values())) > LONG_VALUES:
        values = placeholders.of_the_job(0, 0, params)
        filled = placeholders.fill_command(words, values, params, shell=shell)
        check_size((*prepared.prefix, *filled), prepared.spec.env)


def _check_shell(job: NewJob, prepared: Prepared) -> None:
    if not is_for_a_shell(job, prepared):
        raise UsageError(
            "--shell goes with a shell line", "give the command as one word: 'a && b'"
        )


def _naming(job: NewJob, call: Enqueue, error: GrassError) -> GrassError:
    """Return an error that says which of many jobs it is about."""
    if job.index is not None:
        return error
    error.job = next(at for at, one in enumerate(call.jobs, 1) if one is job)
    if len(call.jobs) == 1:
        return error
    return error.reworded(f"job {error.job} of {len(call.jobs)}: {error.message}")


def _known_call(state: State, call: Enqueue) -> Enqueued | Arrival | None:
    """Return what a call with the same key was, or will be, answered with."""
    for arrival in state.bulk.enqueues:
        if arrival.call.key == call.key and arrival.call.actor == call.actor:
            return arrival
    earlier = state.answered.by_key.get(call.key or "")
    return None if earlier is None else answered(state, earlier, call.actor)


def answered(state: State, earlier: AnsweredCall, actor: str) -> Enqueued:
    """Return the answer to a repeated call; only its own caller gets it."""
    if earlier.actor != actor and not _is_of_brokers(state, earlier.actor, actor):
        raise Refused("this idempotency key belongs to another caller")
    return Enqueued(earlier.first_job, earlier.last_job)


def _is_of_brokers(state: State, *actors: str) -> bool:
    """Tell whether one of two calls came to a broker's socket, the other of a broker.

    Who calls on the machine of a broker is known by the uid while that one leads, and
    by the machine's token while another does. Either may read all jobs anyway.
    """
    tokens = state.tokens.values()
    leading = {
        actor_of(one.name) for one in tokens if Right.LEAD in rights_of(one.role)
    }
    local = sum(actor.startswith("uid:") for actor in actors)
    return state.daemon.shared and local == 1 and not leading.isdisjoint(actors)


def ends_of(found: Found | None) -> dict[int, JobState]:
    """Return the states of jobs as the store had them."""
    if found is None:
        return {}
    read = {number: details.job.state for number, details in found.jobs.items()}
    return found.states | read


def _prepared(
    state: State, call: Enqueue, ends: dict[int, JobState]
) -> dict[int, Prepared]:
    found: dict[int, Prepared] = {}
    for job in call.jobs:
        if id(job.patch) not in found:
            try:
                found[id(job.patch)] = _prepare(state, job.patch, call.directory, ends)
            except GrassError as error:
                raise _naming(job, call, error) from None
    return found


def _with_environment(
    state: State, owner: str, env: dict[str, str], prepared: dict[int, Prepared]
) -> dict[int, Prepared]:
    """Store the caller's environment, after the last check that may refuse the call.

    An environment that no job uses would be pruned from the store, but not from
    memory.
    """
    if state.envs.crowded:
        state.envs.keep_only(state.specs.base_envs())
    origin = (state.daemon.home_worker or "") if state.daemon.shared else ""
    number = state.envs.number(owner, env, origin)
    return {
        key: one._replace(spec=replace(one.spec, base_env=number, origin=origin))
        for key, one in prepared.items()
    }


def _prepare(
    state: State, patch: JobPatch, directory: str | None, ends: dict[int, JobState]
) -> Prepared:
    """Check a patch against queues, units and the jobs that it waits for."""
    with About("queue"):
        queue = queues.find(state, patch.queue or DEFAULT_QUEUE)
    default = ONE_CPU if queue.default_request is None else queue.default_request
    request, auto_vram = split_auto(default)
    if patch.stdin == CHANNEL:
        # A task host is sent what it runs, and needs no file of its caller's.
        directory = None
    plain = Spec(
        request=request,
        auto_vram=auto_vram,
        prefix=queue.prefix,
        queue_cwd=None if patch.cwd else queue.cwd,
        cwd=None if queue.prefix else directory,
        enforce=queue.enforce,
    )
    spec = changed(plain, with_worker_id(state, patch))
    with About("after"):
        unmet = dependency_graph.unmeetable(state, spec.after, ends)
    return checked(state, queue, spec)._replace(unmet=unmet)


def with_worker_id(state: State, patch: JobPatch) -> JobPatch:
    """Return a patch that names its worker by id."""
    if patch.worker is UNSET or patch.worker is None:
        return patch
    with About("worker"):
        return replace(patch, worker=registry.find(state, patch.worker).id)


def checked(state: State, queue: Queue, spec: Spec) -> Prepared:
    """Check a spec against its queue, and the units that workers have for it."""
    with About("env"):
        check_size(queue.prefix, spec.env)
    with About("limit_signal"):
        check_limit_signal(spec.limit_signal, spec.time_limit_s)
    with About("stdin"):
        _check_input(spec)
    if spec.gpu_model is not None:
        _check_model(spec)
    if spec.pool is not None:
        with About("pool"):
            state.pools.find(spec.pool)
    with About("require"):
        registry.check_fit(state, queue, spec)
    with About("enforce"):
        enforcing.check(state, queue, spec)
    kinds = _known_kinds(state)
    if not spec.raw:
        _check_placeholders(spec, kinds)
    return Prepared(queue.name, queue.prefix, spec, kinds)


def _check_model(spec: Spec) -> None:
    if GPU_KINDS.isdisjoint(kind for kind, _ in least_request(spec)):
        with About("gpu_model"):
            raise UsageError(
                "--gpu-model goes with a request for a GPU", "add -g 1 or --vram 8G"
            )


def _check_placeholders(spec: Spec, kinds: frozenset[str]) -> None:
    for field, found in _texts(spec).items():
        with About(field):
            placeholders.check(found, least_request(spec), kinds)


def _texts(spec: Spec) -> dict[str, list[str]]:
    """Return what of a spec may have placeholders, by field."""
    return {
        "env": [value for _, value in spec.env],
        "cwd": [spec.cwd or ""],
        "output": [spec.output or ""],
        "stderr": [spec.stderr or ""],
    }


def _check_input(spec: Spec) -> None:
    """Refuse what cannot be done with input, which is there once."""
    if spec.stdin == NO_INPUT:
        return
    if spec.retries or spec.retry_lost:
        raise UsageError(
            "a job that is given input runs once: what it has read is gone",
            "leave out --retries and --retry-lost, or give --no-stdin",
        )
    if spec.stdin == PTY and spec.stderr is not None:
        raise UsageError("a terminal has one output", "leave out --stderr")


def _known_kinds(state: State) -> frozenset[str]:
    """Return every kind that a placeholder could mean."""
    found = [kind for worker in state.workers.values() for kind in worker.found]
    return frozenset(["gpu", *found, *state.declared.kinds()])


def check_words(words: tuple[str, ...], prepared: Prepared) -> None:
    """Refuse words that are no command, or that name units not asked for."""
    if prepared.spec.guest is not None:
        if words:
            raise UsageError("a guest has no command: its process is there already")
        return
    if prepared.spec.task is not None:
        _check_task(words, prepared)
        return
    if not prepared.prefix:
        _, program = split_assignments(words)
        if not program or not program[0]:
            raise UsageError("no command was given", "grass enqueue -- python train.py")
    text = "".join(words)
    if "\0" in text:
        raise UsageError("a command cannot hold a NUL byte")
    if len(text) > UNCHECKED_LENGTH:
        check_size((*prepared.prefix, *words), prepared.spec.env)
    if not (prepared.spec.raw or prepared.spec.verbatim):
        asked = least_request(prepared.spec)
        placeholders.check(words, asked, prepared.known_kinds)


def _check_task(words: tuple[str, ...], prepared: Prepared) -> None:
    """Refuse a task with a command, of its own or of its queue."""
    if words:
        raise UsageError("a task calls a function, and has no command")
    if prepared.prefix:
        raise UsageError(
            f"queue `{prepared.queue}` runs a command of its own, not functions",
            "enqueue the task in another queue",
        )
    if prepared.spec.stdin != NO_INPUT:
        raise UsageError("a task has no stdin", "give what it needs as arguments")
