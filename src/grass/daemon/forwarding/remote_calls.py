"""Calls to the broker of another machine, for callers on this machine's socket.

They go with this machine's own token, which tells the broker the worker. Each is made
in a thread of its own, for which a stop of the daemon does not wait.
"""

import asyncio
import json
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from starlette.requests import Request

import grass
from grass.api.server.request_body import LARGEST_BODY, counted_body
from grass.client.client import Client
from grass.client.connection import Broken
from grass.config import API_PREFIX, Home
from grass.daemon.daemon_process import DaemonProcess
from grass.daemon.hosting import RemoteBroker, StandbyAnswers
from grass.errors import NoBroker, UsageError
from grass.link.dialer import DialerState
from grass.settings import Settings
from grass.worker.shell.agent import WorkerAgent

WELCOME_S = 10.0
"""How long a call waits for the broker to accept this worker."""

T = TypeVar("T")


class WorkerDaemon(NamedTuple):
    """What the routes of such a daemon need."""

    home: Home
    worker: str
    works_for: RemoteBroker
    settings: Settings
    process: DaemonProcess
    agent: WorkerAgent
    link_state: Callable[[], DialerState]
    """The state of the link to the broker."""
    standby: StandbyAnswers | None = None
    """What is answered by a daemon whose own broker stands by."""
    version: str = grass.__version__

    @property
    def broker(self) -> str:
        """The broker's address, as in a command."""
        return ",".join(map(str, self.works_for.addresses))


async def ask(daemon: WorkerDaemon, call: Callable[[Client], T]) -> T:
    """Make a call to the broker; raise `NoBroker` where it cannot be reached."""
    await _welcomed(daemon)
    return await _in_thread(lambda: _called(daemon, call))


async def read(request: Request) -> Any:  # noqa: ANN401 -- what was sent
    """Return the document that a caller has sent."""
    async with counted_body(request, LARGEST_BODY) as body:
        try:
            return json.loads(body) if body else None
        except ValueError:
            raise UsageError("the request is not JSON") from None


def path_of(request: Request) -> str:
    """Return the path of a request and its query, as a client gives them."""
    path: str = request.scope["raw_path"].decode("ascii").removeprefix(API_PREFIX)
    return f"{path}?{request.url.query}" if request.url.query else path


async def _welcomed(daemon: WorkerDaemon) -> None:
    """Wait until the broker has accepted this worker, or raise why it has not."""
    try:
        async with asyncio.timeout(WELCOME_S):
            await daemon.agent.welcomed.wait()
    except TimeoutError:
        raise NoBroker(daemon.link_state().news, "see `grass workers` there") from None


def _called(daemon: WorkerDaemon, call: Callable[[Client], T]) -> T:
    with Client(daemon.home, broker=daemon.broker) as client:
        try:
            return call(client)
        except Broken:
            raise NoBroker(
                f"the broker at {daemon.broker} went away before it answered",
                "see `grass show`, then try again",
            ) from None


async def _in_thread(call: Callable[[], T]) -> T:
    answer: Future[T] = Future()

    def make() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001 -- raised by the caller
            answer.set_exception(error)

    answer.set_running_or_notify_cancel()
    threading.Thread(target=make, daemon=True).start()
    return await asyncio.wrap_future(answer)
