"""The API without a network: requests go straight into the application."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.types import Message

from grass.api.app import application
from grass.api.context import Context, TcpEndpoint
from grass.broker.shell.service import Broker
from grass.config import API_PREFIX
from grass.errors import StorageError
from grass.link.channel import LinkEnd, pair
from grass.link.messages import Hello, ToBroker, ToWorker, Welcome
from grass.store.sqlite.database_file import is_fatal
from tests.support.building import BOOT, WORKER, units
from tests.support.far_end import FarEnd
from tests.support.patience import PATIENCE_S
from tests.support.stores import open_store

TCP_ENDPOINT = TcpEndpoint("broker.example:7500", "P" * 43)


class Answer(NamedTuple):
    """What came back."""

    status: int
    media_type: str
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


class Call(NamedTuple):
    """A call that is under way."""

    begun: asyncio.Event
    """Set when its answer begins."""
    left: asyncio.Event
    """Set when the caller hangs up."""


class Api:
    """Somebody who calls the API of a real broker."""

    def __init__(self, app: Starlette, broker: Broker, worker: FarEnd) -> None:
        self.app = app
        self.broker = broker
        self.worker = worker
        self.stopped = asyncio.Event()

    async def get(self, path: str, **more: Any) -> Answer:
        return await self.send("GET", path, b"", **more)

    async def post(self, path: str, body: object, **more: Any) -> Answer:
        return await self.send("POST", path, json.dumps(body).encode(), **more)

    async def put(self, path: str, body: object, **more: Any) -> Answer:
        return await self.send("PUT", path, json.dumps(body).encode(), **more)

    async def send(
        self, method: str, path: str, body: bytes, uid: int | None = os.geteuid()
    ) -> Answer:
        """Call a path below the API's prefix as this user."""
        return await self._send(method, path, body, [], {"uid": uid})

    async def remote(
        self,
        method: str,
        path: str,
        body: object,
        token: str | None,
        call: Call | None = None,
    ) -> Answer:
        """Call as somebody on another machine, on a connection of its own."""
        connection = self.app.state.api.connections.accept("192.0.2.1", lambda: None)
        shown = [] if token is None else [(b"authorization", f"Bearer {token}")]
        headers = [(name, value.encode("latin-1")) for name, value in shown]
        data = json.dumps(body).encode()
        try:
            return await self._send(
                method, path, data, headers, {"connection": connection}, call
            )
        finally:
            connection.closed()

    async def remote_beginning(
        self, method: str, path: str, body: object, token: str | None
    ) -> Answer:
        """Call like `remote`, and hang up as soon as an answer begins."""
        begun = asyncio.Event()
        return await self.remote(method, path, body, token, Call(begun, begun))

    async def new_token(self, role: str) -> str:
        """Make a token of a role."""
        body = {"role": role, "code": False}
        return str((await self.post("/tokens", body)).document["token"])

    async def add_worker(self, name: str, found: str) -> FarEnd:
        """Connect one more worker."""
        ends: tuple[LinkEnd[ToWorker, ToBroker], LinkEnd[ToBroker, ToWorker]] = pair()
        self.broker.serve(ends[0])
        worker = FarEnd(ends[1])
        worker.link.send(Hello(name, name, BOOT, units(found), [], []))
        await worker.hears(Welcome)
        return worker

    async def _send(
        self,
        method: str,
        path: str,
        body: bytes,
        headers: list[tuple[bytes, bytes]],
        state: dict[str, Any],
        call: Call | None = None,
    ) -> Answer:
        route, _, query = (API_PREFIX + path).partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": route,
            "raw_path": route.encode(),
            "query_string": query.encode(),
            "headers": headers,
            "state": state,
        }
        call = call or Call(asyncio.Event(), asyncio.Event())
        sent: list[Message] = []
        asked = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if asked:
                return asked.pop()
            await call.left.wait()
            return {"type": "http.disconnect"}

        async def answer(message: Message) -> None:
            sent.append(message)
            call.begun.set()

        await self.app(scope, receive, answer)
        told = dict(sent[0]["headers"])
        pieces = b"".join(message.get("body", b"") for message in sent[1:])
        return Answer(sent[0]["status"], told[b"content-type"].decode(), pieces)


Story = Callable[[Api], Awaitable[None]]


def play(
    folder: Path,
    story: Story,
    run: Callable[..., None] = asyncio.run,
    patience_s: float = PATIENCE_S,
) -> None:
    """Run a broker with one worker behind an API for as long as the story lasts."""
    run(_play(folder, story, patience_s))


async def _play(folder: Path, story: Story, patience_s: float) -> None:
    store = open_store(folder / "grass.db")
    broker = Broker(store, is_fatal)
    ends: tuple[LinkEnd[ToWorker, ToBroker], LinkEnd[ToBroker, ToWorker]] = pair()
    broker.serve(ends[0])
    worker = FarEnd(ends[1])
    stopped = asyncio.Event()
    app = application(
        Context(broker, WORKER, "1.2.3", 0, stopped.set, tcp=TCP_ENDPOINT)
    )
    api = Api(app, broker, worker)
    api.stopped = stopped
    running = asyncio.create_task(broker.run())
    worker.hello()
    try:
        async with asyncio.timeout(patience_s):
            await worker.hears(Welcome)
            await story(api)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError, StorageError):
            await running
        store.close()
