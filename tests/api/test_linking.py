"""The link of a worker on another machine, over a real WebSocket under TLS."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path

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
from tests.support.building import WORKER
from websockets.exceptions import ConnectionClosed, InvalidStatus

from grass.api.routes import worker_link
from grass.link.frames import LARGEST_FRAME
from grass.link.messages import (
    LINK_VERSION,
    Heard,
    Heartbeat,
    Message,
    Start,
    Welcome,
)
from grass.link.remote_end import REFUSED

ANOTHER = "00000000000000fa"
A_THIRD = "00000000000000fb"


async def refusal(tcp: TcpApi, token: str | None, worker: str | None) -> int:
    """Try to open a link; give the status with which that is refused."""
    with pytest.raises(InvalidStatus) as refused:
        async with linked(tcp, token, worker):
            pass
    return refused.value.response.status_code


def test_a_worker_on_another_machine_gets_jobs(
    tmp_path: Path, run: Callable[..., None]
) -> None:
    async def story(tcp: TcpApi) -> None:
        async with welcomed(tcp, await machine_token(tcp)) as channel:
            (worker,) = [
                one
                for one in (await tcp.api.get("/workers")).document["workers"]
                if one["id"] == REMOTE
            ]
            assert worker["connected"]
            assert worker["address"] == HOST
            await tcp.api.post(
                "/jobs", {"jobs": [{"command": "x", "require": "{gpu:1}"}]}
            )
            start = await hears(channel, Start)
            assert isinstance(start, Start)
            assert start.allocation == {"gpu": {"0": 10_000}}
            await say(channel, Heartbeat(7.5))
            heard = await hears(channel, Heard)
            assert heard == Heard(7.5)
        await until_gone(tcp)

    over_tcp(tmp_path, story, run)


@pytest.mark.parametrize("role", ["read", "submit", "operate"])
def test_a_link_needs_the_right_to_work(tmp_path: Path, role: str) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await tcp.api.new_token(role)
        assert await refusal(tcp, token, REMOTE) == 403
        assert REMOTE not in tcp.api.broker.state.workers

    over_tcp(tmp_path, story)


def test_a_link_without_a_good_token_is_refused_without_a_word_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(tcp: TcpApi) -> None:
        await machine_token(tcp)
        for token in (None, "lab.nonsense", "nobody.nonsense", "."):
            assert await refusal(tcp, token, REMOTE) == 401
        assert not tcp.tcp_connections.identified

    with caplog.at_level(logging.WARNING):
        over_tcp(tmp_path, story)
    assert not caplog.records


def test_a_token_belongs_to_one_worker(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await machine_token(tcp)
        assert await refusal(tcp, token, ANOTHER) == 403
        assert await refusal(tcp, token, WORKER) == 403
        loose = await tcp.api.new_token("worker")
        assert await refusal(tcp, loose, None) == 400
        assert await refusal(tcp, loose, REMOTE) == 403
        async with welcomed(tcp, loose, hello(ANOTHER)):
            assert tcp.api.broker.state.workers[ANOTHER].connected
        assert await refusal(tcp, loose, A_THIRD) == 403

    over_tcp(tmp_path, story)


def test_nobody_enrols_as_the_broker_s_own_worker(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        loose = await tcp.api.new_token("worker")
        assert await refusal(tcp, loose, WORKER) == 403

    over_tcp(tmp_path, story)


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (Heartbeat(1.0), "a worker begins with hello"),
        (hello("another"), "this token belongs to another worker"),
        (hello(version=LINK_VERSION + 2), f"speaks version {LINK_VERSION} of the link"),
    ],
)
def test_a_worker_that_begins_wrongly_is_told_why(
    tmp_path: Path, first: Message, told: str
) -> None:
    async def story(tcp: TcpApi) -> None:
        before = set(tcp.api.broker.state.workers)
        async with linked(tcp, await machine_token(tcp)) as channel:
            await say(channel, first)
            code, reason = await closed(channel)
        assert (code, told in reason) == (REFUSED, True)
        assert set(tcp.api.broker.state.workers) == before

    over_tcp(tmp_path, story)


@pytest.mark.parametrize("version", [LINK_VERSION - 1, LINK_VERSION + 1])
def test_a_neighbouring_version_is_welcome(tmp_path: Path, version: int) -> None:
    async def story(tcp: TcpApi) -> None:
        async with linked(tcp, await machine_token(tcp)) as channel:
            await say(channel, hello(version=version))
            assert await hears(channel, Welcome) == Welcome(
                tcp.api.broker.state.cluster,
                LINK_VERSION,
                heeds_readiness=True,
                heeds_withheld=True,
            )
            assert tcp.api.broker.state.workers[REMOTE].connected

    over_tcp(tmp_path, story)


@pytest.mark.parametrize("apart", [-2, 2, 1000])
def test_a_version_far_away_is_refused_by_its_bytes(tmp_path: Path, apart: int) -> None:
    async def story(tcp: TcpApi) -> None:
        said = msgspec.to_builtins(hello()) | {"version": LINK_VERSION + apart}
        async with linked(tcp, await machine_token(tcp)) as channel:
            await channel.send(msgspec.msgpack.encode([said]))
            code, reason = await closed(channel)
        assert (code, f"version {LINK_VERSION + apart}" in reason) == (REFUSED, True)

    over_tcp(tmp_path, story)


def test_a_welcome_says_its_version(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        async with linked(tcp, await machine_token(tcp)) as channel:
            await say(channel, hello())
            frame = await channel.recv()
            assert isinstance(frame, bytes)
            welcome, *_ = msgspec.msgpack.decode(frame)
            assert (welcome["type"], welcome["version"]) == ("welcome", LINK_VERSION)

    over_tcp(tmp_path, story)


@pytest.mark.parametrize(
    "frame", [b"\xff\xff", b"", "text", b"\x91\x81", b"\0" * (LARGEST_FRAME + 1)]
)
def test_a_frame_that_makes_no_sense_ends_the_link(
    tmp_path: Path, frame: bytes | str, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await machine_token(tcp)
        async with welcomed(tcp, token) as channel:
            with contextlib.suppress(ConnectionClosed):
                await channel.send(frame)
            code, reason = await closed(channel)
        assert (code in (REFUSED, worker_link.TOO_BIG), bool(reason)) == (True, True)
        async with welcomed(tcp, token):
            assert tcp.api.broker.state.workers[REMOTE].connected

    over_tcp(tmp_path, story)
    assert not [one for one in caplog.records if one.levelname == "ERROR"]
    assert len([one for one in caplog.messages if "worker.refused" in one]) == 1


def test_a_hello_that_cannot_be_taken_in_ends_the_link_with_the_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await machine_token(tcp)
        for _ in range(2):
            async with linked(tcp, token) as channel:
                bad = hello()
                bad.labels = ("not a label",)
                await say(channel, bad)
                code, reason = await closed(channel)
            assert (code, "label `not a label`" in reason) == (REFUSED, True)
        assert REMOTE not in tcp.api.broker.state.workers

    over_tcp(tmp_path, story)
    assert len([one for one in caplog.messages if "worker.refused" in one]) == 1


def test_a_copied_home_is_told_so_while_the_other_is_here(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await machine_token(tcp)
        first, second = hello(), hello()
        first.instance, second.instance = "one", "two"
        async with linked(tcp, token) as here, linked(tcp, token) as copy:
            await say(here, first)
            await hears(here, Welcome)
            await say(copy, second)
            code, reason = await closed(copy)
            assert (code, "remove worker-id from" in reason) == (REFUSED, True)
            await say(here, Heartbeat(5.0))
            assert await hears(here, Heard) == Heard(5.0)

    over_tcp(tmp_path, story)


def test_a_worker_that_falls_silent_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(tcp: TcpApi) -> None:
        async with welcomed(tcp, await machine_token(tcp)) as channel:
            monkeypatch.setattr(worker_link, "LINK_SILENCE_S", 0.2)
            await say(channel, Heartbeat(5.0))
            await closed(channel)
        assert not tcp.api.broker.state.workers[REMOTE].connected

    over_tcp(tmp_path, story)


def test_revoking_a_token_closes_the_link_at_once(
    tmp_path: Path, run: Callable[..., None]
) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await machine_token(tcp)
        async with welcomed(tcp, token) as channel:
            await tcp.api.send("DELETE", "/tokens/lab", b"")
            await closed(channel)
        assert await refusal(tcp, token, REMOTE) == 401
        assert not tcp.api.broker.state.workers[REMOTE].connected

    over_tcp(tmp_path, story, run)


@pytest.mark.parametrize("named", ["desk", "worker-9", "A" * 16, "f" * 17])
def test_a_worker_has_an_id_that_is_no_name(tmp_path: Path, named: str) -> None:
    async def story(tcp: TcpApi) -> None:
        before = set(tcp.api.broker.state.workers)
        loose = await tcp.api.new_token("worker")
        assert await refusal(tcp, loose, named) == 400
        assert tcp.api.broker.state.tokens["worker"].worker is None
        assert set(tcp.api.broker.state.workers) == before

    over_tcp(tmp_path, story)


def test_the_first_use_of_a_renewed_token_ends_the_former_and_its_link(
    tmp_path: Path,
) -> None:
    async def story(tcp: TcpApi) -> None:
        first = await machine_token(tcp)
        async with welcomed(tcp, first) as channel:
            second = await machine_token(tcp, former=first)
            await say(channel, Heartbeat(1.0))
            assert await hears(channel, Heard) == Heard(1.0)
            assert await tcp.overview(first) == 200
            assert await tcp.overview(second) == 200
            await closed(channel)
        assert second.partition(".")[0] == first.partition(".")[0] == "lab"
        assert await refusal(tcp, first, REMOTE) == 401
        async with welcomed(tcp, second):
            assert tcp.api.broker.state.workers[REMOTE].connected

    over_tcp(tmp_path, story)


def test_links_end_when_the_daemon_stops(
    tmp_path: Path, run: Callable[..., None]
) -> None:
    ends: list[tuple[int, str]] = []

    async def story(tcp: TcpApi) -> None:
        token = await machine_token(tcp)
        opened = asyncio.Event()

        async def stay() -> None:
            async with welcomed(tcp, token) as channel:
                opened.set()
                ends.append(await closed(channel))

        staying = asyncio.create_task(stay())
        await opened.wait()
        tcp.api.app.state.api.closing.set()
        await staying

    over_tcp(tmp_path, story, run)
    assert len(ends) == 1
