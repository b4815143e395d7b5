"""Routes of guests: processes that ask for units, wait for them, and give them back.

A guest names nothing but itself. Its pid and uid are those that the kernel tells of the
socket, so only a caller on this machine can be one; when it started, which it says
itself, has to agree with the kernel, as a pid alone may be that of another process by
now.
"""

import asyncio
import contextlib
import os
import time
from functools import partial
from typing import Any

from msgspec.structs import replace
from starlette.requests import Request

from grass.api.access.auth import actor
from grass.api.context import Context, api_state, context_of
from grass.api.routes.job_calls import enqueue_call
from grass.api.routes.request_bodies import (
    OF_A_GUEST,
    EnqueueBody,
    GiveBackBody,
    GuestBody,
    JobBody,
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
)
from grass.broker.shell.service import Broker
from grass.errors import Forbidden, NotFound, Refused
from grass.keeper import pidfd
from grass.model.amount_text import WHOLE
from grass.model.jobs.job import DEFAULT_QUEUE, Job
from grass.model.jobs.job_types import type_of
from grass.model.jobs.lifecycle import AttemptState
from grass.model.jobs.spec import JobPatch
from grass.model.resources import ONE_CPU, units_json
from grass.queries.documents import GuestReply
from grass.queries.job_documents import why_waiting
from grass.worker.core.prepare import own_variables

ONE_GPU = (("gpu", WHOLE),)
MEASURED_S = 3.0
"""So long it takes at most until a process is looked at."""


async def enter(request: Request, body: GuestBody) -> Enqueued:
    """Ask for units for the calling process; answered once that is durable."""
    context, guest = context_of(request), (_caller(request), body.ticks)
    if not _is_alive(*guest):
        raise Refused("this process is not the one that was named")
    if not context.worker:
        raise Refused(
            "this machine has no worker, so its processes cannot be guests",
            "start one: `grass start`",
        )
    call = _call(context, body, actor(request))
    (job,) = call.jobs
    patch = replace(job.patch, guest=guest, worker=context.worker)
    if body.require is None and body.require_also is None:
        patch = replace(patch, **_usual(context, patch))
    done = await context.broker.call(replace(call, jobs=[replace(job, patch=patch)]))
    _watch(request, done.first)
    return done


def _call(context: Context, body: GuestBody, who: str) -> Enqueue:
    names = [name for name in OF_A_GUEST if name in JobBody.__struct_fields__]
    fields = {name: getattr(body, name) for name in names}
    known = {name: value for name, value in fields.items() if value is not None}
    jobs = EnqueueBody([JobBody(**known)], key=body.key)
    return enqueue_call(jobs, who, context.broker.state, context.settings)


def _usual(context: Context, patch: JobPatch) -> dict[str, Any]:
    """Return what a guest gets that does not say what it needs.

    One with a type gets the memory that is learned of it, any other a whole GPU.
    """
    never_fits = partial(
        context.broker.state.scheduler.never_fits,
        patch.queue or DEFAULT_QUEUE,
        worker=context.worker,
        labels=frozenset(),
    )
    if patch.job_type and never_fits((), learned=patch.job_type) is None:
        return {"request": (), "auto_vram": True}
    return {"request": ONE_GPU if never_fits(ONE_GPU) is None else ONE_CPU}


async def wait(request: Request, body: WaitGuestBody) -> GuestReply:
    """Answer when a guest has its units, has ended, or the time is up."""
    broker, id = context_of(request).broker, _own_guest(request)
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
    """End the wait of a guest whose process is gone: nobody would take its units."""
    broker, watching = context_of(request).broker, api_state(request).waiting_guests
    job = broker.state.jobs.get(id)
    guest = None if job is None else broker.state.specs[job.spec].guest
    if guest is not None and id not in watching and not _has_units(broker, id):
        task = asyncio.ensure_future(_until_gone(broker, id, guest, actor(request)))
        watching[id] = task
        task.add_done_callback(lambda _: watching.pop(id, None))


async def _until_gone(
    broker: Broker, id: int, guest: tuple[int, int], who: str
) -> None:
    descriptor = pidfd.open_checked(*guest)
    begun = asyncio.ensure_future(_begun(broker, id))
    loop, gone = asyncio.get_running_loop(), asyncio.Event()
    try:
        if descriptor is not None:
            loop.add_reader(descriptor, gone.set)
            ended = asyncio.ensure_future(gone.wait())
            await asyncio.wait({begun, ended}, return_when=asyncio.FIRST_COMPLETED)
            ended.cancel()
        if not begun.done():
            await broker.call(GiveBackGuest(who, id))
    finally:
        begun.cancel()
        if descriptor is not None:
            loop.remove_reader(descriptor)
            os.close(descriptor)


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
    return bool(state.profiles.amounts(type_of(state.specs[job.spec], job)))


async def measured(request: Request) -> Done:
    """Learn from what the calling process uses now; answered once it is known."""
    broker, id = context_of(request).broker, _own_guest(request)
    done = await broker.call(MeasureGuest(actor(request), id))
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(MEASURED_S):
            while (job := broker.state.jobs.get(id)) and not _is_profiled(broker, job):
                await broker.moved(id)
    return done


async def _ended(broker: Broker, id: int) -> GuestReply:
    found = await broker.read(lambda db: db.outcomes([id]))
    if not found:
        raise NotFound(f"there is no job {id}")
    return GuestReply(id, found[0].state, found[0].reason)


async def give_back(request: Request, body: GiveBackBody) -> Done:
    """Give the units of the calling process back; it goes on without them."""
    broker, id = context_of(request).broker, _own_guest(request)
    return await broker.call(GiveBackGuest(actor(request), id, body.exit_code))


def _own_guest(request: Request) -> int:
    """Return the job that the path names, unless it is not the calling process."""
    text, caller = str(request.path_params["id"]), _caller(request)
    if not text.isdecimal():
        raise NotFound(f"there is no job `{text}`")
    state = context_of(request).broker.state
    job = state.jobs.get(int(text))
    guest = None if job is None else state.specs[job.spec].guest
    if job is not None and (guest is None or guest[0] != caller):
        raise Forbidden(f"job {text} is not this process", f"`grass cancel {text}`")
    return int(text)


def _caller(request: Request) -> int:
    """Return the pid of the calling process, or refuse it."""
    state = request.scope.get("state", {})
    pid = state.get("pid")
    if not pid:
        raise Refused(
            "only a process on the worker's own machine can be a guest",
            "run it there, or enqueue a command",
        )
    if state.get("uid") != os.geteuid():
        # The keeper could neither signal it nor see how it ends.
        raise Forbidden("a guest's process belongs to the user of the daemon")
    return int(pid)


def _is_alive(pid: int, ticks: int) -> bool:
    try:
        descriptor = pidfd.open_checked(pid, ticks)
    except OSError:
        return False
    if descriptor is not None:
        os.close(descriptor)
    return descriptor is not None
