"""The link of a worker on another machine, spoken by hand over a real WebSocket."""

import contextlib
from collections.abc import AsyncIterator
from typing import TypeVar

from tests.api.tcp_api import HOST, TcpApi
from tests.support.building import BOOT, units
from tests.support.patience import PATIENCE_S
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from grass.link.frames import decoder_to_worker, encode
from grass.link.messages import LINK_VERSION, Hello, Message, Welcome
from grass.link.remote_end import WORKER_HEADER
from grass.tls.pins import client_context

REMOTE = "00000000000000f9"
Said = TypeVar("Said", bound=Message)


def hello(worker: str = REMOTE, version: int = LINK_VERSION) -> Hello:
    return Hello(worker, "lab", BOOT, units("{gpu:1}"), [], [], version=version)


@contextlib.asynccontextmanager
async def linked(
    tcp: TcpApi, token: str | None, worker: str | None = REMOTE
) -> AsyncIterator[ClientConnection]:
    """Open a WebSocket to the link as a worker does."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    if worker is not None:
        headers[WORKER_HEADER] = worker
    async with connect(
        f"wss://{HOST}:{tcp.port}/api/v1/link",
        ssl=client_context(),
        additional_headers=headers,
        compression=None,
        ping_interval=None,
        proxy=None,
        open_timeout=PATIENCE_S,
        close_timeout=1,
    ) as channel:
        yield channel


async def say(channel: ClientConnection, *messages: Message) -> None:
    for frame in encode(messages):
        await channel.send(frame)


async def hears(channel: ClientConnection, kind: type[Said]) -> Said:
    while True:
        frame = await channel.recv()
        assert isinstance(frame, bytes)
        for message in decoder_to_worker.decode(frame):
            if isinstance(message, kind):
                return message


async def machine_token(
    tcp: TcpApi, role: str = "machine", former: str | None = None
) -> str:
    """Join as the worker on another machine."""
    code = (await tcp.api.post("/tokens", {"role": role})).document["code"]
    body = {"code": code, "name": "lab", "worker": REMOTE}
    joined = await tcp.api.remote("POST", "/join", body, former)
    return str(joined.document["token"])


async def closed(channel: ClientConnection) -> tuple[int, str]:
    """Wait until the other side closes the link, and tell why it did."""
    with contextlib.suppress(ConnectionClosed):
        while True:
            await channel.recv()
    return channel.close_code or 0, channel.close_reason or ""


@contextlib.asynccontextmanager
async def welcomed(
    tcp: TcpApi, token: str, greeting: Hello | None = None
) -> AsyncIterator[ClientConnection]:
    """Open a link on which the worker was taken in."""
    said = greeting or hello()
    async with linked(tcp, token, said.worker) as channel:
        await say(channel, said)
        await hears(channel, Welcome)
        yield channel


async def until_gone(tcp: TcpApi) -> None:
    """Wait until the broker knows that the worker's link has ended."""
    while tcp.api.broker.state.workers[REMOTE].connected:
        await tcp.api.broker.next_commit()
