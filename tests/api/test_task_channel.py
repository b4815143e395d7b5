"""The channel between a program and its task host, over a WebSocket under TLS."""

import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.api.links import closed
from tests.api.tcp_api import HOST, TcpApi, over_tcp
from tests.support.patience import PATIENCE_S
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from grass.api.routes.tasks.task_channel import AWAY, BAD_MESSAGE, ENDED
from grass.broker.shell.task_channels import TOO_MUCH
from grass.link.messages import Exited, Start, Started, TaskBytes, TaskBytesTaken
from grass.link.requests import TASK_PIECE, TASK_WINDOW
from grass.tls.pins import client_context


@contextlib.asynccontextmanager
async def opened(tcp: TcpApi, token: str, job: int) -> AsyncIterator[ClientConnection]:
    async with connect(
        f"wss://{HOST}:{tcp.port}/api/v1/jobs/{job}/channel",
        ssl=client_context(),
        additional_headers={"Authorization": f"Bearer {token}"},
        compression=None,
        ping_interval=None,
        proxy=None,
        open_timeout=PATIENCE_S,
        close_timeout=1,
    ) as channel:
        yield channel


async def enqueued(tcp: TcpApi, token: str, **more: str) -> int:
    job = {"command": ["python", "-m", "grass.tasks.host"], "stdin": "channel", **more}
    answer = await tcp.api.remote("POST", "/jobs", {"jobs": [job]}, token)
    return int(answer.document["first"])


async def starts(tcp: TcpApi) -> str:
    start = await tcp.api.worker.hears(Start)
    assert isinstance(start, Start)
    assert start.stdin == "channel"
    tcp.api.worker.link.send(Started(start.attempt, 100, 1))
    return start.attempt


async def hears(tcp: TcpApi) -> TaskBytes:
    message = await tcp.api.worker.hears(TaskBytes)
    assert isinstance(message, TaskBytes)
    return message


async def connected(tcp: TcpApi, channel: ClientConnection) -> int:
    """Wait until the worker is asked for the channel, and return its number."""
    attempt = await starts(tcp)
    assert json.loads(await channel.recv())["allocation"] == {"cpu": {"0": 10_000}}
    first = await hears(tcp)
    assert (first.attempt, first.data) == (attempt, b"")
    return first.channel


async def refusal(tcp: TcpApi, token: str, job: int) -> tuple[int, str]:
    with pytest.raises(InvalidStatus) as refused:
        async with opened(tcp, token, job):
            pass
    response = refused.value.response
    body: dict[str, Any] = json.loads(bytes(response.body))
    return response.status_code, body["detail"]


def test_bytes_go_both_ways_as_they_are_taken(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await tcp.api.new_token("submit")
        send = tcp.api.worker.link.send
        async with opened(tcp, token, await enqueued(tcp, token)) as channel:
            number = await connected(tcp, channel)
            # The host takes nothing: no more than the window goes out.
            pieces = TASK_WINDOW // TASK_PIECE
            for _ in range(pieces + 2):
                await channel.send(bytes(TASK_PIECE))
            for _ in range(pieces):
                assert len((await hears(tcp)).data) == TASK_PIECE
            send(TaskBytesTaken(number, TASK_PIECE))
            assert len((await hears(tcp)).data) == TASK_PIECE
            send(TaskBytesTaken(number, TASK_PIECE))
            send(TaskBytes(number, b"result"))
            assert await channel.recv() == b"result"
            assert await tcp.api.worker.hears(TaskBytesTaken) == TaskBytesTaken(
                number, 6
            )
            assert len((await hears(tcp)).data) == TASK_PIECE
        assert (await hears(tcp)).end

    over_tcp(tmp_path, story)


def test_a_channel_is_only_for_who_has_enqueued_the_job(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        mine, other = [await tcp.api.new_token(role) for role in ("submit", "admin")]
        job = await enqueued(tcp, mine)
        assert await refusal(tcp, other, job) == (403, f"job {job} is not yours")
        reader = await tcp.api.new_token("read")
        assert (await refusal(tcp, reader, job))[0] == 403
        assert (await refusal(tcp, mine, 99))[0] == 404
        plain = await enqueued(tcp, mine, stdin="null")
        assert "no task host" in (await refusal(tcp, mine, plain))[1]

    over_tcp(tmp_path, story)


def test_the_end_of_a_channel_says_whether_to_connect_again(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await tcp.api.new_token("submit")
        send = tcp.api.worker.link.send
        job = await enqueued(tcp, token)
        async with opened(tcp, token, job) as channel:
            number = await connected(tcp, channel)
            send(TaskBytes(number, end=True, problem="no host there"))
            assert await closed(channel) == (AWAY, "no host there")
        async with opened(tcp, token, job) as channel:
            await channel.recv()
            number = (await hears(tcp)).channel
            for _ in range(TASK_WINDOW // TASK_PIECE + 1):
                send(TaskBytes(number, bytes(TASK_PIECE)))
            code, _ = await closed(channel)
            assert (code, TOO_MUCH) == (AWAY, TOO_MUCH)
            assert (await hears(tcp)).end
        async with opened(tcp, token, job) as channel:
            await channel.recv()
            await channel.send("text")
            assert (await closed(channel))[0] == BAD_MESSAGE
            assert (await hears(tcp)).attempt
            assert (await hears(tcp)).end
        async with opened(tcp, token, job) as channel:
            await channel.recv()
            message = await hears(tcp)
            send(Exited(message.attempt, 2, exit_code=0))
            send(TaskBytes(message.channel, end=True))
            assert await closed(channel) == (ENDED, "")
        async with opened(tcp, token, job) as channel:
            assert await closed(channel) == (ENDED, f"job {job} has ended")

    over_tcp(tmp_path, story)


def test_a_worker_that_goes_away_ends_its_channels(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await tcp.api.new_token("submit")
        async with opened(tcp, token, await enqueued(tcp, token)) as channel:
            await connected(tcp, channel)
            tcp.api.worker.link.close()
            code, reason = await closed(channel)
            assert (code, "unreachable" in reason) == (AWAY, True)

    over_tcp(tmp_path, story)
