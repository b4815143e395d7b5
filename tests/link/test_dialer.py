"""A worker that dials a broker, over real TLS on loopback."""

import asyncio
import contextlib
import json
import logging
import select
import socket
import ssl
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import uvloop
from websockets.asyncio.client import ClientConnection
from websockets.datastructures import Headers
from websockets.http11 import Response

from grass.errors import NoBroker
from grass.link import connect, dialer, remote_end
from grass.link.channel import Link
from grass.link.dialer import Dialer, Pauses, Phase
from grass.link.frames import decoder_to_worker
from grass.link.messages import (
    LINK_VERSION,
    Exited,
    Heard,
    Heartbeat,
    Hello,
    OutputData,
    Resync,
    ToBroker,
    ToWorker,
    Welcome,
)
from grass.link.remote_end import RemoteEnd
from grass.model.addresses import Address
from grass.tls.server import ServerIdentity, identity
from tests.link.dialling import HELLO, TOKEN, Owner, closed_port, dialling
from tests.link.far_broker import FarBroker, an_identity, far_broker
from tests.support.patience import PATIENCE_S
from tests.tls.certificates import PASSPHRASE, certificate, dated, keystore


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> ServerIdentity:
    return an_identity(tmp_path_factory.mktemp("broker"))


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry refusals as soon as other errors."""
    monkeypatch.setattr(dialer, "LONGEST_PAUSE_S", 0.1)
    monkeypatch.setattr(dialer, "SHORTEST_PAUSE_S", 0.02)


def play(story: Coroutine[Any, Any, None]) -> None:
    uvloop.run(story)


def linked(
    known: ServerIdentity,
    story: Callable[[FarBroker, Owner], Coroutine[Any, Any, None]],
) -> None:
    """Run a test with a broker and a worker that dials it."""

    async def whole() -> None:
        async with (
            far_broker(known.context) as broker,
            dialling(broker.address, pin=known.pin) as owner,
        ):
            await story(broker, owner)

    play(whole())


def test_a_worker_says_hello_first_and_then_speaks_both_ways(
    known: ServerIdentity,
) -> None:
    async def story(broker: FarBroker, owner: Owner) -> None:
        assert await owner.next() == Resync()
        assert await owner.next() == Welcome("c" * 16, at=5.0)
        assert await owner.line() == f"connected to {broker.address}"
        exited = Exited("a", 1, 0)
        owner.dialer.send(exited)
        await broker.until_heard(Exited)
        assert broker.heard == [HELLO, exited]
        (request,) = broker.requests
        assert request.path == "/api/v1/link"
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        assert request.headers["Grass-Worker"] == "w1"
        assert request.headers["Host"] == str(broker.address)
        assert "Sec-WebSocket-Extensions" not in request.headers

    linked(known, story)


def test_a_proxy_of_the_environment_is_not_used(
    known: ServerIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(broker: FarBroker, owner: Owner) -> None:
        assert await owner.line() == f"connected to {broker.address}"

    with socket.create_server(("127.0.0.1", 0)) as proxy:
        place = f"http://127.0.0.1:{proxy.getsockname()[1]}"
        for name in ("https_proxy", "HTTPS_PROXY", "wss_proxy", "all_proxy"):
            monkeypatch.setenv(name, place)
        linked(known, story)
        called, _, _ = select.select([proxy], [], [], 0)
    assert not called


def test_a_broker_with_another_key_is_sent_nothing(
    known: ServerIdentity, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = an_identity(tmp_path)

    async def story() -> None:
        tries = recorded_tries(monkeypatch)
        async with (
            far_broker(other.context) as broker,
            dialling(broker.address, pin=known.pin) as owner,
        ):
            said = await owner.line()
            assert f"proves the key {other.pin}, not the broker's {known.pin}" in said
            assert "grass join" in said
            owner.dialer.send(HELLO)
            # It tries again, and reports nothing more while nothing changes.
            async with asyncio.timeout(PATIENCE_S):
                for _ in range(4):
                    await tries.get()
            assert owner.lines.empty()
            assert not broker.requests

    play(story())


def recorded_tries(
    monkeypatch: pytest.MonkeyPatch,
) -> asyncio.Queue[connect.ResolvedAddress]:
    """Record each place that is dialled."""
    tries: asyncio.Queue[connect.ResolvedAddress] = asyncio.Queue()

    async def noted(
        place: connect.ResolvedAddress, credential: connect.Credential, limit_s: float
    ) -> ClientConnection:
        tries.put_nowait(place)
        return await connect.open_websocket(place, credential, limit_s)

    monkeypatch.setattr(dialer, "open_websocket", noted)
    return tries


def test_a_place_that_proves_the_key_is_found_among_others(
    known: ServerIdentity, tmp_path: Path
) -> None:
    other = an_identity(tmp_path)

    async def story() -> None:
        async with (
            far_broker(other.context) as wrong,
            far_broker(known.context) as right,
            dialling(
                closed_port(), wrong.address, right.address, pin=known.pin
            ) as owner,
        ):
            assert await owner.line() == f"connected to {right.address}"
            assert not wrong.requests

    play(story())


def test_an_expired_certificate_is_not_spoken_to(tmp_path: Path) -> None:
    key, path = certificate(tmp_path)
    dated(key, path, 1_600_000_000)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path, key)

    async def story() -> None:
        async with (
            far_broker(context) as broker,
            dialling(broker.address, pin="x" * 43) as owner,
        ):
            said = await owner.line()
            assert "certificate expired on 2020-09-13" in said
            assert str(broker.address) in said
            assert not broker.requests

    play(story())


@pytest.mark.parametrize("status", [401, 403])
def test_a_refusal_is_reported_once_in_the_broker_s_own_words(
    known: ServerIdentity, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.WARNING, "websockets.server")

    async def story() -> None:
        async with far_broker(known.context) as broker:
            body = b'{"detail": "the token desk was\\nrevoked", "hint": "join again"}'
            length = Headers({"Content-Length": str(len(body))})
            broker.refusal = Response(status, "No", length, body)
            async with dialling(broker.address, pin=known.pin) as owner:
                said = await owner.line()
                assert said.endswith("the token desk was revoked (join again)")
                await broker.until(lambda: len(broker.requests) > 3)
                assert owner.lines.empty()
                broker.refusal = None
                assert await owner.line() == f"connected to {broker.address}"

    play(story())
    assert TOKEN not in caplog.text
    assert "s3cret" not in caplog.text


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (404, "no broker that workers can dial"),
        (503, "it answers with status 503"),
        (302, "it answers with status 302"),
    ],
)
def test_another_answer_is_reported_by_its_status(
    known: ServerIdentity, status: int, words: str
) -> None:
    async def story() -> None:
        async with far_broker(known.context) as broker:
            location = Headers(
                {"Location": "http://127.0.0.1:9/", "Content-Length": "0"}
            )
            broker.refusal = Response(status, "No", location)
            async with dialling(broker.address, pin=known.pin) as owner:
                assert words in await owner.line()

    play(story())


def test_the_reason_of_a_link_closed_with_a_refusal_is_reported(
    known: ServerIdentity,
) -> None:
    async def story(broker: FarBroker, owner: Owner) -> None:
        await broker.until_heard(Hello)
        assert await owner.line() == f"connected to {broker.address}"
        reason = "this broker speaks version 9, update this worker"
        await broker.connections[-1].close(remote_end.REFUSED, reason)
        assert await owner.line() == (
            f"the broker at {broker.address} refuses: {reason}"
        )

    linked(known, story)


def test_a_broker_of_a_distant_version_is_refused_with_a_reason(
    known: ServerIdentity,
) -> None:
    async def story(broker: FarBroker, owner: Owner) -> None:
        broker.answers = False
        await broker.until_heard(Hello)
        assert await owner.line() == f"connected to {broker.address}"
        document = {"type": "welcome", "cluster": "c" * 16, "version": LINK_VERSION + 2}
        await broker.connections[-1].send(msgspec.msgpack.encode([document]))
        assert await owner.line() == (
            f"the broker at {broker.address}: this worker speaks version {LINK_VERSION}"
            f" of the link, the broker version {LINK_VERSION + 2}: install the same"
            " grass on both"
        )

    linked(known, story)


def test_a_link_counts_once_the_broker_has_welcomed_the_worker(
    known: ServerIdentity,
) -> None:
    async def story(broker: FarBroker, owner: Owner) -> None:
        assert await owner.phase() == (Phase.CONNECTED, False)
        assert await owner.phase() == (Phase.WELCOMED, True)
        await broker.connections[-1].close(remote_end.REFUSED, "no")
        assert await owner.phase() == (Phase.REFUSED, True)
        assert await owner.phase() == (Phase.CONNECTED, False)
        assert await owner.phase() == (Phase.WELCOMED, True)
        broker.connections[-1].transport.abort()
        assert await owner.phase() == (Phase.AWAY, True)

    linked(known, story)


def test_what_cannot_be_reached_does_not_refuse() -> None:
    async def story() -> None:
        async with dialling(closed_port(), pin="x" * 43) as owner:
            assert not owner.last.has_result
            assert await owner.phase() == (Phase.AWAY, True)

    play(story())


def test_it_reconnects_when_the_broker_comes_back_and_says_hello_again(
    known: ServerIdentity,
) -> None:
    async def story() -> None:
        async with far_broker(known.context) as broker:
            address = broker.address
            owner = Owner([address], known.pin)
            running = asyncio.ensure_future(owner.dialer.run())
            await broker.until_heard(Hello)
        assert await owner.line() == f"connected to {address}"
        assert (await owner.line()).startswith(f"the link to {address} ended: ")
        assert await owner.line() == (
            f"the broker at {address} cannot be reached: connection refused"
        )
        owner.dialer.send(Exited("dropped", 1, 0))
        async with far_broker(known.context, port=address.port) as broker:
            await broker.until_heard(Hello)
            assert broker.heard == [HELLO]
            assert await owner.line() == f"connected to {address}"
            owner.dialer.close()
            await running
            await broker.connections[-1].wait_closed()
            assert broker.connections[-1].close_code == 1001

    play(story())


def test_names_are_resolved_again_at_every_attempt(
    known: ServerIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def story() -> None:
        places = {"my.server": closed_port()}

        async def resolve(address: Address) -> list[connect.ResolvedAddress]:
            asked.append(address.host)
            found = await connect.resolve(places[address.host])
            return [place._replace(address=address) for place in found]

        monkeypatch.setattr(dialer, "resolve", resolve)
        async with dialling(Address("my.server", 7500), pin=known.pin) as owner:
            assert "connection refused" in await owner.line()
            async with far_broker(known.context) as first:
                places["my.server"] = first.address
                assert await owner.line() == "connected to my.server:7500"
                assert first.requests[0].headers["Host"] == "my.server:7500"
                async with far_broker(known.context, "::1") as second:
                    places["my.server"] = Address("::1", second.port)
                    first.connections[-1].transport.abort()
                    await second.until_heard(Hello)
        assert len(asked) >= 3

    play(story())


def test_a_name_that_does_not_resolve_is_reported() -> None:
    async def story() -> None:
        async with dialling(Address("nobody.invalid", 7500), pin="x" * 43) as owner:
            said = await owner.line()
            assert "its name is not resolved (" in said
            assert "--advertise HOST:PORT" in said

    play(story())


def test_ipv6_is_dialled_too(known: ServerIdentity) -> None:
    async def story() -> None:
        async with far_broker(known.context, "::1") as broker:
            address = Address("::1", broker.port)
            async with dialling(address, pin=known.pin) as owner:
                await broker.until_heard(Hello)
                assert await owner.line() == f"connected to [::1]:{broker.port}"
                assert broker.requests[0].headers["Host"] == str(address)

    play(story())


def test_heartbeats_are_sent_and_a_silent_broker_is_dialled_again(
    known: ServerIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialer, "HEARTBEAT_S", 0.05)

    async def story(broker: FarBroker, owner: Owner) -> None:
        before = dialer.boottime()
        await broker.until_heard(Heartbeat, 20)
        assert len(broker.connections) == 1
        beats = [one.at for one in broker.heard if isinstance(one, Heartbeat)]
        assert beats == sorted(beats)
        assert before < beats[0] < beats[-1] < dialer.boottime()
        assert await owner.next() == Resync()
        assert isinstance(await owner.next(), Welcome)
        assert await owner.next() == Heard(beats[0])
        broker.answers = False
        monkeypatch.setattr(dialer, "LINK_SILENCE_S", 0.4)
        await broker.until(lambda: len(broker.connections) > 1)
        assert await owner.line() == f"connected to {broker.address}"
        assert (await owner.line()).endswith("ended: nothing was heard for 0.4 s")

    linked(known, story)


def test_every_standby_is_told_that_the_leader_is_silent_before_that_is_dialled(
    known: ServerIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They count who dials them, and the leader yields when it is told."""
    monkeypatch.setattr(dialer, "SEVERAL_HEARTBEAT_S", 0.05)

    async def story() -> None:
        async with contextlib.AsyncExitStack() as ends:
            brokers = [
                await ends.enter_async_context(far_broker(known.context))
                for _ in range(3)
            ]
            leader, *standbys = brokers
            body = json.dumps({"code": "lead-lost", "leader": str(leader.address)})
            length = Headers({"Content-Length": str(len(body))})
            for one in standbys:
                one.refusal = Response(503, "No", length, body.encode())
            addresses = [one.address for one in brokers]
            await ends.enter_async_context(dialling(*addresses, pin=known.pin))
            await leader.until_heard(Heartbeat)
            leader.answers = False
            monkeypatch.setattr(dialer, "SEVERAL_SILENCE_S", 0.4)
            await leader.until(lambda: len(leader.requests) > 1)
            assert [len(one.requests) for one in standbys] == [1, 1]

    play(story())


@pytest.mark.parametrize("frame", [b"garbage", b"\xc1", bytes(17 << 20), "text"])
def test_garbage_and_frames_too_large_end_the_connection_not_the_dialling(
    known: ServerIdentity, frame: bytes | str
) -> None:
    async def story(broker: FarBroker, owner: Owner) -> None:
        await broker.until_heard(Hello)
        with contextlib.suppress(OSError):
            await broker.connections[-1].send(frame)
        await broker.until_heard(Hello, 2)
        assert await owner.line() == f"connected to {broker.address}"
        assert "ended: " in await owner.line()

    linked(known, story)


async def answering(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any],
    context: ssl.SSLContext | None,
) -> asyncio.Server:
    return await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)


@pytest.mark.parametrize("speaks_tls", [True, False])
@pytest.mark.parametrize("garbage", [b"HTTP/1.1 400 No\r\n\r\n", b"\0" * 100_000, b""])
def test_a_place_that_answers_with_garbage_is_reported_and_tried_again(
    known: ServerIdentity, garbage: bytes, speaks_tls: bool
) -> None:
    calls: asyncio.Queue[None] = asyncio.Queue()

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        calls.put_nowait(None)
        writer.write(garbage)
        writer.close()

    async def story() -> None:
        async with await answering(answer, context) as server:
            address = Address(*server.sockets[0].getsockname())
            async with dialling(address, pin=known.pin) as owner:
                assert "cannot be reached: " in await owner.line()
                for _ in range(3):
                    await calls.get()

    context = known.context if speaks_tls else None
    play(story())


@pytest.mark.parametrize("speaks_tls", [True, False])
def test_a_place_that_says_nothing_is_given_up(
    known: ServerIdentity, monkeypatch: pytest.MonkeyPatch, speaks_tls: bool
) -> None:
    monkeypatch.setattr(connect, "OPEN_S", 0.3)

    async def keep_still(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        with contextlib.suppress(OSError):
            await reader.read()
        writer.close()

    async def story() -> None:
        context = known.context if speaks_tls else None
        async with await answering(keep_still, context) as server:
            address = Address(*server.sockets[0].getsockname())
            async with dialling(address, pin=known.pin) as owner:
                assert "does not answer in time" in await owner.line()

    play(story())


def test_heartbeats_pass_output_that_a_slow_broker_does_not_take(
    known: ServerIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dialer, "LINK_SILENCE_S", 1e9)

    async def story(broker: FarBroker, owner: Owner) -> None:
        await broker.until_heard(Hello)
        broker.connections[-1].transport.pause_reading()
        for stream in range(1000):
            owner.dialer.send(OutputData(stream, bytes(64 * 1024)))
        # Time to send what the buffers of both sides take.
        await asyncio.sleep(0.3)
        owner.dialer.send(Heartbeat(7.0))
        broker.connections[-1].transport.resume_reading()
        await broker.until_heard(Heartbeat)
        ahead = broker.count(OutputData)
        assert ahead < 300, ahead
        await broker.until_heard(OutputData, 1000)
        streams = [one.stream for one in broker.heard if isinstance(one, OutputData)]
        assert streams == list(range(1000))

    linked(known, story)


def test_a_broker_that_never_reads_loses_the_link(
    known: ServerIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_end, "MOST_UNSENT", 1 << 20)
    monkeypatch.setattr(remote_end, "SLOW_S", 0.5)

    async def story(broker: FarBroker, owner: Owner) -> None:
        await broker.until_heard(Hello)
        assert await owner.line() == f"connected to {broker.address}"
        broker.connections[-1].transport.pause_reading()
        big: ToBroker = Exited("a" * 100_000, 1, 0)
        for _ in range(500):
            owner.dialer.send(big)
        assert (await owner.line()).endswith(remote_end.TOO_SLOW)
        await broker.until(lambda: len(broker.connections) > 1)

    linked(known, story)


def test_it_can_be_closed_before_it_runs_and_while_it_waits() -> None:
    async def story() -> None:
        owner = Owner([closed_port()], "x" * 43)
        owner.dialer.close()
        await owner.dialer.run()
        assert owner.ends == 1
        async with dialling(closed_port(), pin="x" * 43) as owner:
            await owner.line()
            owner.dialer.close()

    play(story())


def test_a_dialer_and_a_remote_end_are_links_like_any_other() -> None:
    async def story() -> None:
        async def receive() -> None:
            await asyncio.Event().wait()

        async def send(frame: bytes) -> None:
            sent.append(frame)

        dialer = Dialer([closed_port()], "x" * 43, lambda: TOKEN, "w1")
        end: RemoteEnd[ToBroker, ToWorker] = RemoteEnd(send, receive, decoder_to_worker)
        links: list[Link[ToBroker, ToWorker]] = [dialer, end]
        for link in links:
            link.listen(lambda _: None, partial(ended.append, link))
            for _ in range(2):
                link.close()
                link.send(HELLO)
        async with asyncio.timeout(PATIENCE_S):
            await dialer.run()
            await end.run()
        assert ended == links

    sent: list[bytes] = []
    ended: list[object] = []
    play(story())
    assert sent == []


@pytest.mark.parametrize("host", ["x" * 64, "a" * 300, "a..b", "0"])
def test_a_strange_host_is_reported_and_does_not_end_the_dialling(host: str) -> None:
    async def story() -> None:
        async with dialling(Address(host, 9), pin="x" * 43) as owner:
            assert "cannot be reached: " in await owner.line()

    play(story())


def test_a_dialer_needs_an_address() -> None:
    with pytest.raises(NoBroker, match="no address"):
        Dialer([], "x" * 43, lambda: TOKEN, "w1")


def test_pauses_grow_with_jitter_and_start_over_after_a_connection_that_lasted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dialer, "LONGEST_PAUSE_S", 30.0)
    monkeypatch.setattr(dialer, "SHORTEST_PAUSE_S", 0.1)
    pauses = Pauses()
    given = [pauses.next() for _ in range(14)]
    expected = [min(30, 0.1 * 2**number) for number in range(14)]
    for pause_s, full_s in zip(given, expected, strict=True):
        assert full_s / 2 <= pause_s <= full_s
    pauses.connected(dialer.LASTED_S / 2)
    assert pauses.next() >= 15
    pauses.connected(dialer.LASTED_S)
    assert pauses.next() <= 0.1
    pauses.refused()
    assert 15 <= pauses.next() <= 30
    assert len({Pauses().next() for _ in range(20)}) > 10


def test_an_owner_s_defect_ends_the_connection_and_not_the_dialling(
    known: ServerIdentity, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(broker: FarBroker, owner: Owner) -> None:
        await broker.until_heard(Hello)
        hello = owner.arrived

        def fail_once(batch: list[ToWorker]) -> None:
            owner.dialer.listen(hello, owner.ended)
            raise KeyError("a defect")

        owner.dialer.listen(fail_once, owner.ended)
        await broker.say(Heard(1.0))
        await broker.until_heard(Hello, 2)

    linked(known, story)
    assert "defect" in [one.getMessage().split()[0] for one in caplog.records]


def test_the_broker_s_own_key_file_and_a_key_store_both_serve(
    tmp_path: Path,
) -> None:
    first, again = an_identity(tmp_path), an_identity(tmp_path)
    store = keystore(tmp_path, *certificate(tmp_path))
    other = identity(str(tmp_path), str(store), PASSPHRASE.encode)
    assert first.pin == again.pin != other.pin

    async def story() -> None:
        for one in (first, again, other):
            async with (
                far_broker(one.context) as broker,
                dialling(broker.address, pin=one.pin) as owner,
            ):
                assert await owner.line() == f"connected to {broker.address}"

    play(story())
