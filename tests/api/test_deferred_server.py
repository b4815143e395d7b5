"""A worker's daemon listens at once, and loads what answers for its first caller."""

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.calling import Api, play

from grass.api.server.unix_listener import listen
from grass.api.server.unix_server import ApiServer
from grass.daemon.forwarding.deferred_server import DeferredServer

_OF_STORE = ["grass.store.blob_folder"]
_PARTS = ("grass.broker", "grass.queries", "grass.scheduler", "grass.api.app")
_LIBRARIES = ("uvicorn", "starlette", "anyio", "click", "sqlite3", "cryptography")


class Made:
    """Makes servers, and counts them."""

    def __init__(self, api: Api) -> None:
        self.api, self.count = api, 0

    def __call__(self) -> ApiServer:
        self.count += 1
        return ApiServer(self.api.app)


async def _version(path: Path) -> bool:
    reader, writer = await asyncio.open_unix_connection(str(path))
    head = b"GET /api/v1/overview HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    writer.write(head)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return b'"version":"1.2.3"' in answer


def test_a_server_is_made_for_its_first_caller(tmp_path: Path) -> None:
    path = tmp_path / "s"

    async def story(api: Api) -> None:
        made = Made(api)
        server = DeferredServer(made)
        serving = asyncio.create_task(server.serve_on(listen(str(path))))
        await asyncio.sleep(0)
        assert made.count == 0
        assert all(await asyncio.gather(_version(path), _version(path)))
        assert await _version(path)
        assert made.count == 1
        server.stop()
        await serving

    play(tmp_path, story)


@pytest.mark.parametrize("is_asked_before", [False, True])
def test_a_socket_that_was_deleted_is_replaced(
    tmp_path: Path, is_asked_before: bool
) -> None:
    path, other = tmp_path / "s", tmp_path / "t"

    async def story(api: Api) -> None:
        made = Made(api)
        server = DeferredServer(made)
        serving = asyncio.create_task(server.serve_on(listen(str(path))))
        await asyncio.sleep(0)
        if is_asked_before:
            assert await _version(path)
        await server.serve_anew_on(listen(str(other)))
        assert await _version(other)
        assert made.count == 1
        server.stop()
        await serving

    play(tmp_path, story)


def test_a_server_that_nobody_asks_is_never_made(tmp_path: Path) -> None:
    path = tmp_path / "s"

    async def story(api: Api) -> None:
        made = Made(api)
        server = DeferredServer(made)
        listener = listen(str(path))
        serving = asyncio.create_task(server.serve_on(listener))
        await asyncio.sleep(0)
        server.stop()
        await serving
        assert made.count == 0
        assert listener.fileno() == -1
        with socket.socket(socket.AF_UNIX) as caller, pytest.raises(OSError):
            caller.connect(str(path))

    play(tmp_path, story)


def test_the_daemon_of_a_worker_loads_nothing_of_a_broker() -> None:
    looked = "import sys, grass.daemon.run_daemon, grass.daemon.worker_host"
    words = [sys.executable, "-I", "-c", f"{looked}; print(*sys.modules)"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    loaded = ran.stdout.split()
    assert [name for name in loaded if name.startswith(_PARTS)] == []
    assert [name for name in loaded if name.partition(".")[0] in _LIBRARIES] == []
    assert [name for name in loaded if name.startswith("grass.store.")] == _OF_STORE
