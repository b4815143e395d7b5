"""The API on a real Unix socket."""

import asyncio
import json
import os
import stat
from pathlib import Path

from tests.support.calling import Api, play

from grass.api.server.unix_listener import listen
from grass.api.server.unix_server import ApiServer


def test_requests_on_the_socket_are_answered_to_its_owner(tmp_path: Path) -> None:
    folder = tmp_path / ("deep" * 20) / ("deeper" * 20)
    folder.mkdir(parents=True)
    path = str(folder / "s")

    async def story(api: Api) -> None:
        server = ApiServer(api.app)
        serving = asyncio.create_task(server.serve_on(listen(path)))
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        document = await overview(folder)
        assert document["daemon"]["version"] == "1.2.3"
        server.stop()
        await serving

    play(tmp_path, story)


def test_a_socket_that_a_dead_daemon_left_is_replaced(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    listen(path).close()
    assert os.path.exists(path)
    second = listen(path)
    second.close()


async def overview(folder: Path) -> dict[str, dict[str, str]]:
    """Ask over the socket, by a path that is short enough."""
    descriptor = os.open(folder, os.O_PATH)
    address = f"/proc/self/fd/{descriptor}/s"
    reader, writer = await asyncio.open_unix_connection(address)
    os.close(descriptor)
    writer.write(
        b"GET /api/v1/overview HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    document: dict[str, dict[str, str]] = json.loads(body)
    return document
