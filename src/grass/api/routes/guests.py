"""Routes of guests: processes that ask for units, wait for them, and give them back.

A guest names nothing but itself: `access/own_process` has its pid from the kernel. On
another machine the daemon of the worker there does that and names the pid, with the
token of that worker: so no caller can name a process of another machine.
"""

import asyncio
import contextlib
import time
from functools import partial
from typing import Any

from msgspec.structs import replace
from starlette.requests import Request

from grass.api.access.auth import actor, connection_of, identify
from grass.api.access.own_jobs import own_jobs
from grass.api.access.own_process import calling_process, check_started, until_gone
from grass.api.context import Context, api_state, context_of
from grass.api.routes.job_calls import enqueue_call
from grass.api.routes.request_bodies import (
    OF_A_GUEST,
    EnqueueBody,
    GiveBackBody,
    GuestBody,
    InnerTypeBody,
    JobBody,
    MeasureGuestBody,
    WaitGuestBody,
)
from grass.api.server.cancellation import while_connected
from grass.broker.core.attempts.placing import start_of
from grass.broker.core.calls import (
    Done,
    Enqueue,
    Enqueued,
    GiveBackGuest,
    MeasureGuest,
    NoteInnerType,
)
from grass.broker.core.profiles.learning import is_known
from grass.broker.shell.service import Broker
from grass.errors import Forbidden, NotFound, Refused
from grass.model.access import Right
from grass.model.amount_text import WHOLE
from grass.model.jobs.job import DEFAULT_QUEUE, Job
from grass.model.jobs.job_types import type_of
from grass.model.jobs.lifecycle import AttemptState
from grass.model.jobs.spec import JobPatch
from grass.model.resources import ONE_CPU, units_json
from grass.queries.documents import GuestReply, InnerTypeReply
from grass.queries.job_documents import why_waiting
from grass.worker.core.prepare import own_variables

ONE_GPU = (("gpu", WHOLE),)
MEASURED_S = 3.0
"""The longest time until a process is looked at."""


async def enter(request: Request, body: GuestBody) -> Enqueued:
    """Ask for units for the calling process; answered once that is durable."""
    context, (worker, pid) = context_of(request), _process(request, body.pid)
    if _is_here(request):
        check_started(pid, body.ticks)
    if not worker:
        raise Refused(
            "this machine has no worker, so its processes cannot be guests",
            "start one: `grass start`",
        )
    call = _call(context, body, actor(request))
    (job,) = call.jobs
    patch = replace(job.patch, guest=(pid, body.ticks), worker=worker)
    if body.require is None and body.require_also is None:
        patch = replace(patch, **_usual(context, patch, worker))
    done = await context.broker.call(replace(call, jobs=[replace(job, patch=patch)]))
    _watch(request, done.first)
    return done


def _call(context: Context, body: GuestBody, who: str) -> Enqueue:
    names = [name for name in OF_A_GUEST if name in JobBody.__struct_fields__]
    fields = {name: getattr(body, name) for name in names}
    known = {name: value for name, value in fields.items() if value is not None}
    jobs = EnqueueBody([JobBody(**known)], key=body.key)
    return enqueue_call(jobs, who, context.broker.state, context.settings)


def _usual(context: Context, patch: JobPatch, worker: str) -> dict[str, Any]:
    """Return what a guest gets that does not say what it needs.

    One with a type gets the memory that is learned of it, any other a whole GPU.
    """
    never_fits = partial(
        context.broker.state.scheduler.never_fits,
        patch.queue or DEFAULT_QUEUE,
        worker=worker,
        labels=frozenset(),
    )
    if patch.job_type and never_fits((), learned=patch.job_type) is None:
        return {"request": (), "auto_vram": True}
    return {"request": ONE_GPU if never_fits(ONE_GPU) is None else ONE_CPU}


async def wait(request: Request, body: WaitGuestBody) -> GuestReply:
    """Answer when a guest has its units, has ended, or the time is up."""
    broker, id = context_of(request).broker, _own_guest(request, body.pid)
    _watch(request, id)
    waiting = asyncio.wait_for(_begun(broker, id), body.timeout_s)
    with contextlib.suppress(TimeoutError):
        await while_connected(request, waiting)
    return await _reply(broker, id)


async def _begun(broker: Broker, id: int) -> None:
    while id in broker.state.jobs and not _has_units(broker, id):
        await broker.moved(id)
    await broker.written(id)


def _has_units(broker: Broker, id: int) -> bool:
    attempt = broker.state.attempts.get(id)
    return attempt is not None and attempt.state is AttemptState.RUNNING


def _watch(request: Request, id: int) -> None:
    """End the wait of a guest whose process is gone: its units would never be used."""
    broker, watching = context_of(request).broker, api_state(request).guest_tasks
    job = broker.state.jobs.get(id)
    guest = None if job is None else broker.state.specs[job.spec].guest
    if guest is None or id in watching or _has_units(broker, id):
        return
    if _is_here(request):
        task = asyncio.ensure_future(_until_gone(broker, id, guest, actor(request)))
        watching[id] = task
        task.add_done_callback(lambda _: watching.pop(id, None))


async def _until_gone(
    broker: Broker, id: int, guest: tuple[int, int], who: str
) -> None:
    begun = asyncio.ensure_future(_begun(broker, id))
    gone = asyncio.ensure_future(until_gone(*guest))
    try:
        await asyncio.wait({begun, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not begun.done():
            gone.result()
            await broker.call(GiveBackGuest(who, id, None))
    finally:
        begun.cancel()
        gone.cancel()


async def _reply(broker: Broker, id: int) -> GuestReply:
    state = broker.state
    job, attempt = state.jobs.get(id), state.attempts.get(id)
    if job is None:
        return await _ended(broker, id)
    if attempt is None or attempt.state is not AttemptState.RUNNING:
        why = why_waiting(job, state, time.monotonic(), {})
        return GuestReply(id, job.state, why or "starts now")
    worker = state.workers.get(attempt.worker)
    gpus = {} if worker is None else worker.found.get("gpu", {})
    variables = own_variables(start_of(state, job, attempt), gpus)
    units = units_json(attempt.allocation)
    found = state.workers[attempt.worker].found.get("gpu", {})
    uuids = {name: str(unit.details.get("uuid", "")) for name, unit in found.items()}
    return GuestReply(
        id, job.state, None, units, variables, uuids, _is_profiled(broker, job)
    )


def _is_profiled(broker: Broker, job: Job) -> bool:
    state = broker.state
    return is_known(state, job.id, type_of(state.specs[job.spec], job))


async def measured(request: Request, body: MeasureGuestBody) -> Done:
    """Learn from what the calling process uses now; answered once it is known."""
    broker, id = context_of(request).broker, _own_guest(request, body.pid)
    done = await broker.call(MeasureGuest(actor(request), id))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MEASURED_S):
            while (job := broker.state.jobs.get(id)) and not _is_profiled(broker, job):
                await broker.moved(id)
    return done


async def inner_type(request: Request, body: InnerTypeBody) -> InnerTypeReply:
    """Let what is known of a function hold for the job that it runs in."""
    broker, text = context_of(request).broker, str(request.path_params["id"])
    attempt = broker.state.attempts.get(int(text)) if text.isdecimal() else None
    if attempt is None:
        raise NotFound(f"there is no job `{text}` that runs")
    caller = identify(request)
    if Right.WORK not in caller.rights or caller.worker != attempt.worker:
        await own_jobs(request, [int(text)])
    await broker.call(NoteInnerType(actor(request), int(text), body.job_type))
    return InnerTypeReply(is_known(broker.state, int(text), body.job_type))


async def _ended(broker: Broker, id: int) -> GuestReply:
    found = await broker.read(lambda db: db.outcomes([id]))
    if not found:
        raise NotFound(f"there is no job {id}")
    return GuestReply(id, found[0].state, found[0].reason)


async def give_back(request: Request, body: GiveBackBody) -> Done:
    """Give the units of the calling process back; it goes on without them."""
    broker, id = context_of(request).broker, _own_guest(request, body.pid)
    return await broker.call(GiveBackGuest(actor(request), id, body.exit_code))


def _own_guest(request: Request, named: int | None) -> int:
    """Return the job that the path names, unless it is not the calling process."""
    text, process = str(request.path_params["id"]), _process(request, named)
    if not text.isdecimal():
        raise NotFound(f"there is no job `{text}`")
    state = context_of(request).broker.state
    job = state.jobs.get(int(text))
    spec = None if job is None else state.specs[job.spec]
    # Processes of two machines may have the same pid.
    if spec is not None and (not spec.guest or process != (spec.worker, spec.guest[0])):
        raise Forbidden(f"job {text} is not this process", f"`grass cancel {text}`")
    return int(text)


def _process(request: Request, named: int | None) -> tuple[str, int]:
    """Return the worker of the caller's machine and the caller's pid, or refuse it."""
    caller = identify(request)
    if named is not None and caller.worker is not None and Right.WORK in caller.rights:
        return caller.worker, named
    return context_of(request).worker, calling_process(request)


def _is_here(request: Request) -> bool:
    """Return whether the calling process is on this machine."""
    return connection_of(request) is None
