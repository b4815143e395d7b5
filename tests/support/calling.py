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

from grass.api.app import PREFIX, application
from grass.api.context import Context
from grass.broker.service import Broker
from grass.errors import StorageError
from grass.link.messages import ToBroker, ToWorker, Welcome
from grass.link.pair import LinkEnd, pair
from grass.store.sqlite import SqliteStore
from grass.store.sqlite_file import is_fatal
from tests.support.building import WORKER
from tests.support.far_end import FarEnd


class Answer(NamedTuple):
    """What came back."""

    status: int
    media_type: str
    body: bytes

    @property
    def document(self) -> Any:
        return json.loads(self.body)


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
        route, _, query = (PREFIX + path).partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": route,
            "raw_path": route.encode(),
            "query_string": query.encode(),
            "headers": [],
            "state": {"uid": uid},
        }
        sent: list[Message] = []
        asked = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> Message:
            if asked:
                return asked.pop()
            await asyncio.Event().wait()
            raise AssertionError

        async def answer(message: Message) -> None:
            sent.append(message)

        await self.app(scope, receive, answer)
        headers = dict(sent[0]["headers"])
        pieces = b"".join(message.get("body", b"") for message in sent[1:])
        return Answer(sent[0]["status"], headers[b"content-type"].decode(), pieces)


Story = Callable[[Api], Awaitable[None]]


def play(folder: Path, story: Story) -> None:
    """Run a broker with one worker behind an API for as long as the story lasts."""
    asyncio.run(_play(folder, story))


async def _play(folder: Path, story: Story) -> None:
    store = SqliteStore(folder / "grass.db")
    broker = Broker(store, is_fatal)
    ends: tuple[LinkEnd[ToWorker, ToBroker], LinkEnd[ToBroker, ToWorker]] = pair()
    broker.serve(ends[0])
    worker = FarEnd(ends[1])
    stopped = asyncio.Event()
    app = application(Context(broker, WORKER, "1.2.3", 0, stopped.set))
    api = Api(app, broker, worker)
    api.stopped = stopped
    running = asyncio.create_task(broker.run())
    worker.hello()
    try:
        async with asyncio.timeout(10):
            await worker.hears(Welcome)
            await story(api)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError, StorageError):
            await running
        store.close()
