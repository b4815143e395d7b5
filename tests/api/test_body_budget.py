"""How much is kept of what peers send, over real connections."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

from tests.api.links import closed, hears, linked, machine_token, say, welcomed
from tests.api.tcp_api import TcpApi, Visit, over_tcp
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from grass.api.budget import MIB, Budget
from grass.broker.core.calls import FromWorker
from grass.broker.core.inbox import Inbox
from grass.config import API_PREFIX
from grass.link.messages import Heard, Heartbeat, Hello, Report

BODY = json.dumps({"select": ["9" * (MIB - 100)]}).encode()


def test_a_peer_has_its_share_and_all_together_the_whole() -> None:
    budget = Budget(10, 6)
    assert budget.reserve("a", 6)
    assert not budget.reserve("a", 1)
    assert budget.reserve("b", 4)
    assert not budget.reserve("c", 1)
    budget.release("a", 6)
    assert budget.reserve("c", 5)
    assert budget.reserved == 9


async def begin(visit: Visit, token: str, body: bytes) -> None:
    """Send the head of a request, and the body but for its last byte."""
    head = f"POST {API_PREFIX}/jobs/select HTTP/1.1\r\nHost: x\r\n"
    head += f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n"
    visit.writer.write(head.encode() + body[:-1])
    await visit.writer.drain()


async def until(budget: Budget, least: int, most: int) -> None:
    """Wait until so many bytes are kept."""
    while not least <= budget.reserved <= most:  # noqa: ASYNC110 -- nobody is told of it
        await asyncio.sleep(0)


def test_bodies_that_never_end_take_a_share_and_give_it_back(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        budget = tcp.api.app.state.api.bodies = Budget(4 * MIB, 2 * MIB)
        token, other = [await tcp.api.new_token("read") for _ in range(2)]
        open_ones = [await tcp.visit() for _ in range(2)]
        for visit in open_ones:
            await begin(visit, token, BODY)
        await until(budget, 2 * (len(BODY) - 1), 2 * MIB)

        async def asked(shown: str) -> int:
            visit = await tcp.visit()
            await begin(visit, shown, BODY)
            visit.writer.write(BODY[-1:])
            return (await visit.reply()).status

        assert await asked(token) == 503
        assert await asked(other) != 503
        for visit in open_ones:
            visit.close()
        await until(budget, 0, 0)
        assert await asked(token) != 503
        assert budget.reserved == 0

    over_tcp(tmp_path, story, patience_s=30)


async def begin_frame(channel: ClientConnection, size: int) -> None:
    """Send a message in pieces, of which the last never comes."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"\0" * size
        await asyncio.Event().wait()

    with contextlib.suppress(ConnectionClosed):
        await channel.send(pieces())


def test_frames_that_never_end_take_a_share_and_give_it_back(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        budget = tcp.tcp_connections.frames = Budget(4 * MIB, 2 * MIB)
        token = await machine_token(tcp)
        async with welcomed(tcp, token) as good, linked(tcp, token) as bad:
            sending = asyncio.ensure_future(begin_frame(bad, MIB))
            await until(budget, MIB, 2 * MIB)
            async with linked(tcp, token) as worse:
                more = asyncio.ensure_future(begin_frame(worse, 2 * MIB))
                await closed(worse)
                more.cancel()
            await say(good, Heartbeat(1.0))
            assert await hears(good, Heard) == Heard(1.0)
            sending.cancel()
        await until(budget, 0, 0)

    over_tcp(tmp_path, story, patience_s=30)


def test_of_hellos_that_wait_only_the_last_is_kept() -> None:
    inbox = Inbox()
    much = Hello("w", "n", "b", {}, [Report("a", {}, True)] * 1000, [])
    calls = [FromWorker("w", much) for _ in range(3)]
    for call in calls:
        inbox.put(call, None)
    kept = [isinstance(one.message, Hello) and one.message.running for one in calls]
    assert kept == [[], [], much.running]
    assert inbox.take()[0] is calls[2]
