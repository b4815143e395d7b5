"""Workers that say too much, or hear nothing, harm none but themselves."""

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.api.links import (
    REMOTE,
    closed,
    hears,
    hello,
    linked,
    machine_token,
    say,
    until_gone,
    welcomed,
)
from tests.api.tcp_api import HOST, TcpApi, over_tcp
from tests.support.building import BOOT, units
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from grass.api.routes import worker_link
from grass.broker.core.calls import AnyCall
from grass.broker.shell import service
from grass.link.frames import MOST_MESSAGES, decoder_to_worker, encode
from grass.link.messages import (
    Exited,
    Heard,
    Heartbeat,
    Hello,
    Report,
    Start,
    Welcome,
)
from grass.link.remote_end import REFUSED, WORKER_HEADER
from grass.tls.pins import client_context

PATIENCE_S = 60
FLOOD = 60_000


async def rows(tcp: TcpApi, kind: str) -> int:
    """Count the rows of a kind that the journal has of the worker."""
    page = (await tcp.api.get(f"/events?kind={kind}&limit=1000")).document
    return sum(one["data"].get("worker") == REMOTE for one in page["events"])


async def slowest_enqueue_s(tcp: TcpApi, done: asyncio.Future[None]) -> float:
    """Enqueue one job after the other until something is done; all are taken.

    What counts is how long this process worked, whatever else the machine does.
    """
    slowest_s = 0.0
    while not done.done():
        began = time.process_time()
        reply = await tcp.api.post("/jobs", {"jobs": [{"command": "x"}]})
        assert reply.status == 200, reply.document
        slowest_s = max(slowest_s, time.process_time() - began)
    return slowest_s


def test_a_frame_of_too_many_hellos_ends_the_link_and_nothing_else(
    tmp_path: Path, run: Callable[..., None]
) -> None:
    async def story(tcp: TcpApi) -> None:
        async with welcomed(tcp, await machine_token(tcp)) as channel:
            frame = msgspec.msgpack.encode([hello()] * FLOOD)
            with contextlib.suppress(ConnectionClosed):
                await channel.send(frame)
            ended = asyncio.ensure_future(closed(channel))
            assert await slowest_enqueue_s(tcp, _done(ended)) < 2
            assert ended.result()[0] == REFUSED
        assert await rows(tcp, "worker-connected") == 1

    over_tcp(tmp_path, story, run, PATIENCE_S)


def test_of_many_hellos_one_is_taken_in_and_noted_once(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        many = [hello() for _ in range(MOST_MESSAGES)]
        for number, one in enumerate(many):
            one.at = float(number)
        async with linked(tcp, await machine_token(tcp)) as channel:
            said = asyncio.ensure_future(_say_often(channel, encode(many), 5))
            assert await slowest_enqueue_s(tcp, said) < 2
            while (await hears(channel, Welcome)).at != many[-1].at:
                pass
        assert await rows(tcp, "worker-connected") == 1

    over_tcp(tmp_path, story, patience_s=PATIENCE_S)


def test_links_that_replace_each_other_are_noted_once(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await machine_token(tcp)
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(5):
                await stack.enter_async_context(welcomed(tcp, token))
            assert await rows(tcp, "worker-connected") == 1
        await until_gone(tcp)
        async with welcomed(tcp, token):
            assert await rows(tcp, "worker-connected") == 2

    over_tcp(tmp_path, story)


def test_a_worker_that_says_too_much_is_held_back_and_callers_are_not(
    tmp_path: Path, run: Callable[..., None]
) -> None:
    async def story(tcp: TcpApi) -> None:
        nonsense = encode([Exited("nonsense", 5)] * MOST_MESSAGES)
        rounds = tcp.api.broker._rounds
        post, most = rounds.post, 0

        def counted(call: AnyCall, reply: Any = None) -> None:
            nonlocal most
            post(call, reply)
            most = max(most, rounds.waiting_from(REMOTE))

        rounds.post = counted  # type: ignore[method-assign]
        async with welcomed(tcp, await machine_token(tcp)) as channel:
            said = asyncio.ensure_future(_say_often(channel, nonsense, 10))
            assert await slowest_enqueue_s(tcp, said) < 5
        assert (
            service.MOST_WAITING_MESSAGES
            < most
            <= service.MOST_WAITING_MESSAGES + MOST_MESSAGES
        )

    over_tcp(tmp_path, story, run, PATIENCE_S)


def test_a_worker_with_many_attempts_is_taken_in_soon(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        await tcp.api.post("/pause", {})
        async with linked(tcp, await machine_token(tcp)) as channel:
            began = time.process_time()
            await say(channel, _much(10_000, "f" * 16))
            await hears(channel, Welcome)
            assert time.process_time() - began < 5

    over_tcp(tmp_path, story, patience_s=PATIENCE_S)


def test_ends_of_many_jobs_are_all_heard(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        number = 1000
        wide = Hello(REMOTE, "lab", BOOT, units(f"{{gpu:{number}}}"), [], [])
        jobs = [{"command": "x", "require": "{gpu:1}"}] * number
        async with welcomed(tcp, await machine_token(tcp), wide) as channel:
            await tcp.api.post("/jobs", {"jobs": jobs})
            names = await _started(channel, number)
            began = time.process_time()
            await say(channel, *(Exited(name, 5, 0) for name in names))
            await tcp.api.broker.ended(range(1, number + 1))
            assert time.process_time() - began < 2

    over_tcp(tmp_path, story, patience_s=PATIENCE_S)


def test_a_link_that_reads_nothing_does_not_outlive_its_successor(
    tmp_path: Path, run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_link, "CLOSE_S", 0.2)

    async def story(tcp: TcpApi) -> None:
        token = await machine_token(tcp)
        much = _much(60_000, tcp.api.broker.state.cluster)
        before = set(tcp.connections)
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(3):
                channel = await stack.enter_async_context(_deaf(tcp, token))
                await say(channel, much)
                await tcp.api.broker.next_commit()
            async with welcomed(tcp, token) as channel:
                while len(set(tcp.connections) - before) > 1:
                    await say(channel, Heartbeat(1.0))
                    await hears(channel, Heard)
            assert not tcp.tcp_connections.unidentified

    over_tcp(tmp_path, story, run, PATIENCE_S)


def _done(task: asyncio.Future[tuple[int, str]]) -> asyncio.Future[None]:
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    task.add_done_callback(lambda _: done.set_result(None))
    return done


async def _say_often(
    channel: ClientConnection, frames: list[bytes], often: int
) -> None:
    for _ in range(often):
        for frame in frames:
            await channel.send(frame)


def _much(number: int, cluster: str) -> Hello:
    """Say hello with attempts that the broker does not know."""
    names: Iterator[str] = (f"{cluster}.{1000 + job}.1" for job in range(number))
    reports = [Report(name, {"gpu": {"0": 1}}, running=True) for name in names]
    return Hello(REMOTE, "lab", BOOT, units("{gpu:1}"), reports, [])


async def _started(channel: ClientConnection, number: int) -> list[str]:
    names: list[str] = []
    while len(names) < number:
        frame = await channel.recv()
        assert isinstance(frame, bytes)
        said = decoder_to_worker.decode(frame)
        names += [one.attempt for one in said if isinstance(one, Start)]
    return names


@contextlib.asynccontextmanager
async def _deaf(tcp: TcpApi, token: str) -> AsyncIterator[ClientConnection]:
    """Open a link, and read next to nothing from it."""
    channel = socket.create_connection((HOST, tcp.port))
    channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    channel.setblocking(False)
    shown = {"Authorization": f"Bearer {token}", WORKER_HEADER: REMOTE}
    tls: ssl.SSLContext = client_context()
    websocket = await connect(
        f"wss://{HOST}:{tcp.port}/api/v1/link",
        sock=channel,
        ssl=tls,
        additional_headers=shown,
        max_queue=1,
        open_timeout=PATIENCE_S,
        compression=None,
        ping_interval=None,
        proxy=None,
    )
    try:
        yield websocket
    finally:
        websocket.transport.abort()
