"""Whose process is at the other end of a connection on loopback."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from tests.support.patience import PATIENCE_S

from grass.api.server import web_server
from grass.api.server.web_server import WebServer, _listed, _uid_of


def test_the_kernel_tells_whose_connection_it_is() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = listener.getsockname()
        with socket.create_connection(near) as client:
            far = client.getsockname()
            accepted, _ = listener.accept()
            with accepted:
                assert _uid_of(far, near) == os.geteuid()
                client.close()
                assert _uid_of(far, near) is None


LITTLE = {
    ("127.0.0.1", 4004): "0100007F:0FA4",
    ("::1", 80): "00000000000000000000000001000000:0050",
    ("::ffff:127.0.0.1", 1): "0000000000000000FFFF00000100007F:0001",
}


@pytest.mark.skipif(sys.byteorder != "little", reason="of another order")
@pytest.mark.parametrize("address", LITTLE)
def test_an_address_is_written_as_the_kernel_lists_it(address: tuple[str, int]) -> None:
    assert _listed(address) == LITTLE[address]


async def nothing(scope: Any, receive: Any, send: Any) -> None:
    """An application that is never called."""


def serving(story: Callable[[tuple[str, int]], Awaitable[None]]) -> None:
    async def serve() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        server = WebServer(nothing)
        await server.listen([listener])
        try:
            await asyncio.wait_for(story(listener.getsockname()), PATIENCE_S)
        finally:
            await server.close()

    asyncio.run(serve())


async def await_end(stream: asyncio.StreamReader) -> None:
    with contextlib.suppress(ConnectionError):
        assert await stream.read() == b""


def test_a_connection_without_a_request_is_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_server, "FIRST_REQUEST_S", 0.01)

    async def story(address: tuple[str, int]) -> None:
        reader, writer = await asyncio.open_connection(*address)
        await await_end(reader)
        writer.close()

    serving(story)


def test_others_cannot_use_up_the_daemons_descriptors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(web_server, "_is_own", lambda transport: False)
    monkeypatch.setattr(web_server, "FIRST_REQUEST_S", 10 * PATIENCE_S)

    async def story(address: tuple[str, int]) -> None:
        some = [
            await asyncio.open_connection(*address)
            for _ in range(web_server.MOST_OF_OTHERS + 1)
        ]
        await await_end(some[-1][0])
        for _, writer in some:
            writer.close()

    serving(story)
