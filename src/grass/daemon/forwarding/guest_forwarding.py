"""Guests of a machine that works for another machine's broker.

The broker cannot see which process calls. So this daemon, whose socket tells it, adds
the caller's pid to the calls of guests, and the machine's token tells the broker whose
pid that is. What the broker does for guests of its own machine is done here: a guest
whose process is gone waits no more. An end is told to the broker when it is back.
"""

import asyncio
import contextlib
from typing import Any

from starlette.requests import Request

from grass.api.access.own_process import calling_process, check_started, until_gone
from grass.api.context import api_state
from grass.api.server.cancellation import while_connected
from grass.daemon.forwarding.remote_calls import WorkerDaemon, ask, read
from grass.errors import GrassError, NoDaemon, NotFound, UsageError
from grass.keeper.process_table import start_ticks
from grass.link.dialer import Pauses

ANSWER_S = 2.0
"""How long a guest that gives its units back waits for a broker that is away."""

Document = dict[str, Any]


async def enter(request: Request) -> Document:
    """Ask the broker for units for the calling process."""
    daemon, (pid, body) = _daemon(request), await _with_pid(request)
    check_started(pid, body.get("ticks", 0))
    reply = await ask(daemon, lambda broker: broker.idempotent("POST", "/guests", body))
    _watch(request, int(reply["first"]), pid)
    return reply


async def wait(request: Request) -> Document:
    """Answer when the calling process has its units, has ended, or the time is up."""
    daemon, (pid, body), job = _daemon(request), await _with_pid(request), _job(request)
    _watch(request, job, pid)
    path = f"/guests/{job}/wait"
    asking = ask(daemon, lambda broker: broker.once("POST", path, body, may_last=True))
    reply: Document = await while_connected(request, asking)
    if reply["environment"]:
        _replace_task(request, job, None)
    return reply


async def measured(request: Request) -> Document:
    """Have the broker learn from what the calling process uses now."""
    daemon, (_, body), job = _daemon(request), await _with_pid(request), _job(request)
    path = f"/guests/{job}/measured"
    return await ask(daemon, lambda broker: broker.idempotent("POST", path, body))


async def end(request: Request) -> Document:
    """Give the units of the calling process back, now or when the broker is back."""
    daemon, (_, body), job = _daemon(request), await _with_pid(request), _job(request)
    telling = asyncio.ensure_future(_tell_end(daemon, job, body))
    _replace_task(request, job, telling)
    try:
        async with asyncio.timeout(ANSWER_S):
            return await asyncio.shield(telling)
    except TimeoutError:
        later = (
            f"the broker at {daemon.broker} is away, and hears of it when it is back"
        )
        return {"jobs": [], "warnings": [later], "changed": False}


def _daemon(request: Request) -> WorkerDaemon:
    daemon = request.app.state.context
    assert isinstance(daemon, WorkerDaemon)
    return daemon


async def _with_pid(request: Request) -> tuple[int, Document]:
    """Return the caller's pid, and what it asks with that pid added."""
    pid, body = calling_process(request), await read(request)
    if not isinstance(body, dict):
        raise UsageError("the request is not a JSON object")
    return pid, {**body, "pid": pid}


def _job(request: Request) -> int:
    text = str(request.path_params["id"])
    if not text.isdecimal():
        raise NotFound(f"there is no job `{text}`")
    return int(text)


def _watch(request: Request, job: int, pid: int) -> None:
    """End the wait of a guest whose process is gone: its units would never be used."""
    if job not in api_state(request).guest_tasks:
        watching = asyncio.ensure_future(_end_when_gone(_daemon(request), job, pid))
        _replace_task(request, job, watching)


def _replace_task(request: Request, job: int, task: asyncio.Future[Any] | None) -> None:
    """Do something else for a guest, or nothing, instead of what was done before."""
    tasks = api_state(request).guest_tasks

    def forget(done: asyncio.Future[Any]) -> None:
        # An error that comes after its guest was answered has no reader.
        _ = done.cancelled() or done.exception()
        if tasks.get(job) is done:
            del tasks[job]

    before = tasks.pop(job, None)
    if before is not None:
        before.cancel()
    if task is not None:
        tasks[job] = task
        task.add_done_callback(forget)


async def _end_when_gone(daemon: WorkerDaemon, job: int, pid: int) -> None:
    with contextlib.suppress(GrassError, OSError):
        await until_gone(pid, start_ticks(pid) or 0)
        await _tell_end(daemon, job, {"pid": pid, "exit_code": None})


async def _tell_end(daemon: WorkerDaemon, job: int, body: Document) -> Document:
    """Tell the broker of an end, again and again while it is away."""
    path, pauses = f"/guests/{job}/end", Pauses()
    while True:
        try:
            return await ask(daemon, lambda broker: broker.once("POST", path, body))
        except NoDaemon:
            await asyncio.sleep(pauses.next())
