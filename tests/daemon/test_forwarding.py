"""A worker's daemon that passes calls on to a broker, and is told to stop meanwhile."""

import asyncio
import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from starlette.types import Message

from grass.api.app import Application
from grass.config import API_PREFIX, Home
from grass.daemon.forwarding.api_forwarding import application
from grass.daemon.forwarding.remote_calls import WorkerDaemon
from tests.support.patience import PATIENCE_S


def daemon(folder: Path) -> WorkerDaemon:
    """Give a worker's daemon whose broker has not answered yet."""
    agent = SimpleNamespace(welcomed=asyncio.Event(), running=0)
    unused = cast("Any", None)
    return WorkerDaemon(
        Home(str(folder)),
        "00000000000000f9",
        unused,
        unused,
        unused,
        cast("Any", agent),
        unused,
    )


async def asked(app: Application, asking: asyncio.Event) -> list[Message]:
    """Ask for what the broker knows; `asking` is set once the daemon listens to us."""
    path = f"{API_PREFIX}/workers"
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [],
        "state": {"uid": os.geteuid()},
    }
    sent: list[Message] = []
    body = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Message:
        if body:
            return body.pop()
        asking.set()
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return sent


def test_who_waits_for_the_broker_is_told_that_the_daemon_stops(tmp_path: Path) -> None:
    async def story() -> None:
        app, asking = application(daemon(tmp_path)), asyncio.Event()
        answer = asyncio.ensure_future(asked(app, asking))
        await asking.wait()
        app.state.api.closing.set()
        begin, rest = await answer
        assert begin["status"] == 503
        assert json.loads(rest["body"])["code"] == "stopping"

    asyncio.run(asyncio.wait_for(story(), PATIENCE_S))
