"""The channel between a program and its task host: a WebSocket beside the routes.

It is for whoever has enqueued the job, and for nobody else, as the host runs what it is
sent. The caller waits in it until the job runs, which a first message tells; from then
on messages are bytes, both ways. Nobody here looks at them, and none are read that the
host does not take. When the channel is over, the close frame says why.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect

from grass.api.access.auth import actor, identify, record_use, require
from grass.api.context import api_state, context_of
from grass.api.problem import problem_response
from grass.api.routes.broker_calls import named_job, running_attempt
from grass.broker.shell.service import Broker
from grass.broker.shell.task_channels import TaskChannel
from grass.errors import Forbidden, GrassError, Refused, Unreachable
from grass.event_log import EventLog
from grass.link.requests import TASK_PIECE
from grass.model.access import Right
from grass.model.jobs.job import Attempt
from grass.model.jobs.spec import CHANNEL
from grass.queries.documents import json_bytes

log = EventLog(__name__)

ENDED = 1000
"""The close code: the job has ended, or the program has left."""
AWAY = 4004
"""The close code: the worker or the host cannot be reached now; connect again."""
BAD_MESSAGE = 1008
LARGEST_MESSAGE = 4 * TASK_PIECE
LONGEST_REASON = 120
"""In bytes: the size of a WebSocket's close frame is limited."""
CLOSE_S = 2.0


async def channel(websocket: WebSocket) -> None:
    """Connect a program with the job that it has enqueued."""
    try:
        job = await _own_job(websocket)
    except GrassError as error:
        await websocket.send_denial_response(problem_response(error))
        return
    await websocket.accept()
    session = _Session(websocket, context_of(websocket).broker, job)
    try:
        code, reason = await session.run(api_state(websocket).closing)
    except Exception as error:  # noqa: BLE001 -- the program connects again
        log.defect(error)
        code, reason = AWAY, "a defect of grass"
    finally:
        session.close()
    await _close(websocket, code, reason)


async def _own_job(websocket: WebSocket) -> int:
    """Return the job of the path, which the caller has enqueued; or raise."""
    identify(websocket)
    require(websocket, Right.SUBMIT)
    details = await named_job(websocket)
    job = details.job
    if job.owner != actor(websocket):
        raise Forbidden(
            f"job {job.id} is not yours",
            "only the program that has enqueued a task host can use it",
        )
    if details.spec.stdin != CHANNEL:
        raise Refused(f"job {job.id} is no task host, and has no channel")
    await record_use(websocket)
    return job.id


class _Session:
    """One WebSocket, and the channel behind it."""

    def __init__(self, websocket: WebSocket, broker: Broker, job: int) -> None:
        self._websocket = websocket
        self._broker = broker
        self._job = job
        self._channel: TaskChannel | None = None
        self._first: asyncio.Future[Any] = asyncio.ensure_future(websocket.receive())

    async def run(self, closing: asyncio.Event) -> tuple[int, str]:
        """Serve it; return the close code, and why it ends."""
        attempt = await self._running(closing)
        if isinstance(attempt, tuple):
            return attempt
        broker = self._broker
        opened = broker.requests.channels.open(
            attempt.worker, broker.state.attempt_id(attempt)
        )
        self._channel = opened
        await self._websocket.send_text(json_bytes(_document(attempt)).decode())
        works = (self._to_host(opened), self._to_program(opened), closing.wait())
        ended: tuple[int, str] | None = await _first_of(works)
        if ended is not None:
            return ended
        return (AWAY, opened.problem) if opened.problem else (ENDED, "")

    def close(self) -> None:
        """Give the channel up; may be called twice."""
        self._first.cancel()
        if self._channel is not None:
            self._channel.close()

    async def _running(self, closing: asyncio.Event) -> Attempt | tuple[int, str]:
        """Wait until the job runs, for as long as the program does."""
        running = asyncio.ensure_future(running_attempt(self._broker, self._job))
        stop = asyncio.ensure_future(closing.wait())
        try:
            await asyncio.wait(
                [running, stop, self._first], return_when=asyncio.FIRST_COMPLETED
            )
            if not running.done():
                return AWAY, ""
            attempt = running.result()
        except Unreachable as error:
            return AWAY, str(error)
        finally:
            running.cancel()
            stop.cancel()
        return (ENDED, f"job {self._job} has ended") if attempt is None else attempt

    async def _to_host(self, opened: TaskChannel) -> tuple[int, str] | None:
        message = await self._first
        while message["type"] == "websocket.receive":
            data = message.get("bytes")
            if data is None or len(data) > LARGEST_MESSAGE:
                return BAD_MESSAGE, "messages are bytes, 256 KiB at most"
            await opened.send(bytes(data))
            message = await self._websocket.receive()
        return None

    async def _to_program(self, opened: TaskChannel) -> None:
        while data := await opened.receive():
            await self._websocket.send_bytes(data)
            opened.passed_on(len(data))


async def _first_of(works: tuple[Coroutine[Any, Any, Any], ...]) -> Any:  # noqa: ANN401
    """Return what the first of them returns, and cancel the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    outcome = next(iter(done))
    gone = isinstance(outcome.exception(), WebSocketDisconnect | RuntimeError)
    value = None if gone else outcome.result()
    return value if isinstance(value, tuple) else None


def _document(attempt: Attempt) -> dict[str, object]:
    return {"attempt": attempt.number, "allocation": attempt.allocation}


async def _close(websocket: WebSocket, code: int, reason: str) -> None:
    said = reason.encode(errors="replace")[:LONGEST_REASON].decode(errors="ignore")
    try:
        async with asyncio.timeout(CLOSE_S):
            await websocket.close(code, said)
    except (WebSocketDisconnect, RuntimeError, TimeoutError):
        """The program has left."""
