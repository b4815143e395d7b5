"""The TCP server on loopback, with real TLS: valid tokens work, floods do not harm."""

import asyncio
import contextlib
import logging
import os
import resource
import socket
import ssl
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop
from tests.api.tcp_api import HOST, TcpApi, Visit, over_tcp
from tests.support.patience import PATIENCE_S

from grass.api import tcp_connections
from grass.api.server.listen_sockets import bound
from grass.api.server.tcp_server import LARGEST_HEAD
from grass.errors import Refused
from grass.model.addresses import Address
from grass.tls.pins import client_context

FLOOD = 10_000
KEPT_OPEN = 300
ELSEWHERE = "127.0.0.2"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strangers have less time than usual, so that a test need not wait."""
    monkeypatch.setattr(tcp_connections, "IDENTIFY_S", 0.3)


def test_a_valid_token_is_accepted(tmp_path: Path, run: Callable[..., None]) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await tcp.api.new_token("submit")
        visit = await tcp.visit()
        reply = await visit.ask("GET", "/overview", token=token)
        assert reply.status == 200
        assert reply.document["daemon"]["version"] == "1.2.3"
        jobs = {"jobs": [{"command": "x"}]}
        assert (await visit.ask("POST", "/jobs", jobs, token)).document["first"] == 1
        (job,) = (await visit.ask("GET", "/jobs", token=token)).document["jobs"]
        assert job["owner"] == "token:submit"
        assert (await visit.ask("GET", "/overview")).status == 401
        assert len(tcp.tcp_connections.identified) == 1

    over_tcp(tmp_path, story, run)


def test_only_tls_1_3_is_spoken(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        old = client_context()
        old.minimum_version = ssl.TLSVersion.TLSv1_2
        old.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises(OSError):
            await asyncio.open_connection(HOST, tcp.port, ssl=old)

    over_tcp(tmp_path, story)


def test_a_machine_joins_over_the_wire(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        issued = (await tcp.api.post("/tokens", {})).document
        visit = await tcp.visit()
        body = {"code": issued["code"], "name": "lab.example", "worker": "f" * 16}
        reply = await visit.ask("POST", "/join", body)
        assert reply.status == 200
        assert reply.document["name"] == "lab-example"
        assert await tcp.overview(reply.document["token"]) == 200

    over_tcp(tmp_path, story)


async def until_sent_away(tcp: TcpApi, said: bytes = b"") -> None:
    """Say something, and return when the server hangs up.

    On a busy machine that may be before TLS is agreed on.
    """
    with contextlib.suppress(OSError):
        visit = await tcp.visit()
        visit.writer.write(said)
        assert await visit.is_hung_up()


@pytest.mark.usefixtures("impatient")
def test_a_connection_that_sends_nothing_is_closed(
    tmp_path: Path, run: Callable[..., None]
) -> None:
    async def story(tcp: TcpApi) -> None:
        assert await (await tcp.plain()).is_hung_up()
        await until_sent_away(tcp)
        assert not tcp.tcp_connections.unidentified

    over_tcp(tmp_path, story, run)


@pytest.mark.usefixtures("impatient")
def test_a_connection_that_sends_slowly_is_closed(
    tmp_path: Path, run: Callable[..., None]
) -> None:
    async def story(tcp: TcpApi) -> None:
        with contextlib.suppress(OSError):
            visit = await tcp.visit()
            leaving = asyncio.create_task(visit.is_hung_up())
            visit.writer.write(b"GET /api/v1/overview HTTP/1.1\r\n")
            while not leaving.done():
                visit.writer.write(b"X-More: 1\r\n")
                await asyncio.wait([leaving], timeout=0.02)

    over_tcp(tmp_path, story, run)


@pytest.mark.usefixtures("impatient")
def test_a_body_without_an_end_is_not_waited_for(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        head = b"POST /api/v1/join HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n"
        await until_sent_away(tcp, head + b'{"code":')

    over_tcp(tmp_path, story)


async def identified(tcp: TcpApi, token: str) -> Visit:
    """Connect and show a token; again where the machine was too busy for that."""
    while True:
        with contextlib.suppress(OSError, EOFError):
            visit = await tcp.visit()
            await visit.ask("GET", "/overview", token=token)
            return visit


@pytest.mark.usefixtures("impatient")
def test_a_connection_that_has_shown_a_token_may_be_slow(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await tcp.api.new_token("read")
        visit = await identified(tcp, token)
        await until_sent_away(tcp)
        assert (await visit.ask("GET", "/overview", token=token)).status == 200

    over_tcp(tmp_path, story)


def test_a_wrong_token_is_refused_and_soon_shown_out(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        visit = await tcp.visit()
        for _ in range(tcp_connections.MOST_REFUSALS - 1):
            reply = await visit.ask("GET", "/overview", token="admin.nonsense")
            assert (reply.status, reply.document["code"]) == (401, "unauthorized")
            assert "connection" not in reply.headers
        last = await visit.ask("GET", "/overview")
        assert last.headers["connection"] == "close"
        assert await visit.is_hung_up()

    over_tcp(tmp_path, story)


@pytest.mark.parametrize("size", [LARGEST_HEAD + 1, 20 * LARGEST_HEAD])
def test_a_head_that_is_too_large_is_cut_off(
    tmp_path: Path, size: int, run: Callable[..., None]
) -> None:
    async def story(tcp: TcpApi) -> None:
        visit = await tcp.visit()
        visit.writer.write(b"GET /api/v1/overview HTTP/1.1\r\nX: " + b"x" * size)
        assert await visit.is_hung_up()

    over_tcp(tmp_path, story, run)


def test_a_body_without_a_token_is_not_read(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        visit = await tcp.visit()
        head = (
            b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999\r\n\r\n"
        )
        visit.writer.write(head)
        reply = await visit.reply()
        assert reply.status == 401

    over_tcp(tmp_path, story)


A_LOT = 256 * 2**20
"""More than sockets and TLS hold on the way."""
LENGTH = b"Content-Length: %d" % A_LOT
CHUNKED = b"Transfer-Encoding: chunked"


async def pour(visit: Visit, path: bytes, header: bytes, token: str = "") -> int:
    """Send a large body for as long as somebody takes it; give how much that was."""
    shown = f"Authorization: Bearer {token}\r\n".encode() if token else b""
    head = b"POST /api/v1%s HTTP/1.1\r\nHost: x\r\n%s%s\r\n\r\n"
    visit.writer.write(head % (path, shown, header))
    piece, sent = b"x" * 2**20, 0
    framed = b"%x\r\n%s\r\n" % (len(piece), piece) if header == CHUNKED else piece
    with contextlib.suppress(OSError):
        while sent < A_LOT:
            visit.writer.write(framed)
            await visit.writer.drain()
            sent += len(piece)
    return sent


@pytest.mark.parametrize("header", [LENGTH, CHUNKED], ids=["length", "chunked"])
@pytest.mark.parametrize("path", [b"/join", b"/jobs", b"/nothing"])
def test_a_flood_without_a_token_is_not_read(
    tmp_path: Path, path: bytes, header: bytes, run: Callable[..., None]
) -> None:
    async def story(tcp: TcpApi) -> None:
        sent = await pour(await tcp.visit(), path, header)
        assert sent < A_LOT / 4
        assert await tcp.overview(await tcp.api.new_token("read")) == 200

    over_tcp(tmp_path, story, run, patience_s=60)


def test_a_flood_from_somebody_without_the_right_is_not_swallowed(
    tmp_path: Path,
) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await tcp.api.new_token("read")
        sent = await pour(await tcp.visit(), b"/jobs", LENGTH, token)
        assert sent < A_LOT / 4

    over_tcp(tmp_path, story, patience_s=60)


def test_a_join_that_is_too_large_is_told_so(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        for code in ("x" * 2**16, "x" * 2**20):
            visit = await tcp.visit()
            reply = await visit.ask("POST", "/join", {"code": code, "name": "rack"})
            assert (reply.status, reply.document["code"]) == (413, "too-large")
            assert "larger than 65536 bytes" in reply.document["detail"]
            assert await visit.is_hung_up()

    over_tcp(tmp_path, story)


def test_a_small_body_is_read_in_chunks_too(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        body = b'{"code": "nonsense", "name": "rack"}'
        visit = await tcp.visit()
        head = b"POST /api/v1/join HTTP/1.1\r\nHost: x\r\n" + CHUNKED + b"\r\n\r\n"
        visit.writer.write(head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
        assert (await visit.reply()).status == 401
        # The connection goes on: what is small is read to its end.
        assert (await visit.ask("GET", "/overview")).status == 401

    over_tcp(tmp_path, story)


GARBAGE = [b"\x00" * 100, b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" + b"\xff" * 500]


@pytest.mark.parametrize("data", GARBAGE)
def test_garbage_instead_of_a_handshake_ends_the_connection(
    tmp_path: Path,
    data: bytes,
    run: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def story(tcp: TcpApi) -> None:
        visit = await tcp.plain()
        visit.writer.write(data)
        assert await visit.is_hung_up()

    with caplog.at_level(logging.WARNING):
        over_tcp(tmp_path, story, run)
    assert not caplog.records


@pytest.mark.parametrize(
    "data", [b"\x00\xff\r\n\r\n", b"NONSENSE\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"]
)
def test_garbage_instead_of_a_request_ends_the_connection(
    tmp_path: Path, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(tcp: TcpApi) -> None:
        visit = await tcp.visit()
        visit.writer.write(data)
        assert await visit.is_hung_up()

    with caplog.at_level(logging.WARNING):
        over_tcp(tmp_path, story)
    assert not caplog.records


def test_a_revoked_token_is_cut_off_in_the_middle_of_a_stream(
    tmp_path: Path, run: Callable[..., None]
) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await tcp.api.new_token("read")
        other = await tcp.api.new_token("operate")
        streaming, staying = await tcp.visit(), await tcp.visit()
        await staying.ask("GET", "/overview", token=other)
        streaming.writer.write(
            b"GET /api/v1/events/stream HTTP/1.1\r\nHost: x\r\n"
            b"Authorization: Bearer %s\r\n\r\n" % token.encode()
        )
        await streaming.reader.readuntil(b"id: ")
        await tcp.api.send("DELETE", "/tokens/read", b"")
        assert await streaming.is_hung_up()
        assert await tcp.overview(token) == 401
        assert (await staying.ask("GET", "/overview", token=other)).status == 200

    over_tcp(tmp_path, story, run)


async def shown_in_time(tcp: TcpApi, life_s: float = 0.5) -> tuple[Visit, str]:
    """Show a token that expires soon; one that lives longer where that was too late."""
    body = {"role": "read", "code": False, "hours": life_s / 3600}
    token = str((await tcp.api.post("/tokens", body)).document["token"])
    visit = await tcp.visit()
    if (await visit.ask("GET", "/overview", token=token)).status == 200:
        return visit, token
    return await shown_in_time(tcp, 4 * life_s)


def test_a_token_that_expires_is_cut_off(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        visit, token = await shown_in_time(tcp)
        assert await visit.is_hung_up()
        assert await tcp.overview(token) == 401

    over_tcp(tmp_path, story)


def test_the_oldest_unidentified_connection_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tcp_connections, "MOST_UNIDENTIFIED", 3)

    async def story(tcp: TcpApi) -> None:
        first = await tcp.plain(ELSEWHERE)
        later = [await tcp.plain(ELSEWHERE) for _ in range(2)]
        alone = await tcp.visit()
        assert await first.is_hung_up()
        more = await tcp.plain(ELSEWHERE)
        assert await later[0].is_hung_up()
        # Who is alone at an address does not give way to a crowd from another.
        assert (await alone.ask("GET", "/overview")).status == 401
        assert len(tcp.tcp_connections.unidentified) == 3
        more.close()

    over_tcp(tmp_path, story)


def test_at_the_limit_a_new_connection_replaces_one(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await tcp.api.new_token("read")
        tcp.tcp_connections.most_connections = 2
        inside = [await tcp.visit() for _ in range(2)]
        for visit in inside:
            await visit.ask("GET", "/overview", token=token)
        refused_unread = await tcp.plain()
        assert await refused_unread.is_hung_up()
        assert (await inside[0].ask("GET", "/overview", token=token)).status == 200
        inside[1].close()
        await until(lambda: len(tcp.tcp_connections.identified) == 1)
        assert await tcp.overview(token) == 200

    over_tcp(tmp_path, story)


async def dribbles(tcp: TcpApi) -> None:
    visit = await tcp.visit(ELSEWHERE)
    visit.writer.write(b"GET /api/v1/overview HTTP/1.1\r\n")
    while not visit.reader.at_eof():
        visit.writer.write(b"X-More: 1\r\n")
        await asyncio.sleep(0.01)


async def shows_nonsense(tcp: TcpApi) -> None:
    visit = await tcp.visit(ELSEWHERE)
    while True:
        await visit.ask("GET", "/overview", token="admin.nonsense")


async def has_a_large_head(tcp: TcpApi) -> None:
    visit = await tcp.visit(ELSEWHERE)
    visit.writer.write(b"GET /api/v1/overview HTTP/1.1\r\nX: " + b"x" * 2**20)
    await visit.is_hung_up()


async def speaks_no_tls(tcp: TcpApi) -> None:
    visit = await tcp.plain(ELSEWHERE)
    visit.writer.write(b"\xff" * 5000)
    await visit.is_hung_up()


async def guesses_codes(tcp: TcpApi) -> None:
    visit = await tcp.visit(ELSEWHERE)
    while True:
        body = {"code": "guess", "name": "x", "worker": "w"}
        await visit.ask("POST", "/join", body)


async def for_ever(tcp: TcpApi, act: Callable[[TcpApi], Awaitable[None]]) -> None:
    """Do it again and again, whatever comes of it."""
    while True:
        with contextlib.suppress(OSError, EOFError):
            await act(tcp)
        await asyncio.sleep(0)


def test_a_valid_token_works_during_floods(
    tmp_path: Path, run: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    acts = [dribbles, shows_nonsense, has_a_large_head, speaks_no_tls, guesses_codes]

    async def story(tcp: TcpApi) -> None:
        token = await tcp.api.new_token("submit")
        code = (await tcp.api.post("/tokens", {})).document["code"]
        crowd = [asyncio.create_task(for_ever(tcp, act)) for act in acts * 4]
        visit = await tcp.visit()
        for number in range(1, 11):
            jobs = {"jobs": [{"command": "x", "hold": True}]}
            reply = await visit.ask("POST", "/jobs", jobs, token)
            assert reply.document["first"] == number
            assert await tcp.overview(token) == 200
        joined = await visit.ask("POST", "/join", {"code": code, "name": "friend"})
        assert joined.status == 200
        for task in crowd:
            task.cancel()
        await asyncio.gather(*crowd, return_exceptions=True)
        assert sorted(tcp.api.broker.state.tokens) == ["code", "friend", "submit"]

    with caplog.at_level(logging.WARNING, logger="grass"):
        over_tcp(tmp_path, story, run)
    assert not caplog.records


POUR = """
import socket, sys
from collections import deque
port, count, most = map(int, sys.argv[1:4])
kept = deque()
for _ in range(count):
    kept.append(socket.create_connection(("127.0.0.1", port), 30, (sys.argv[4], 0)))
    if len(kept) > most:
        kept.popleft().close()
"""
"""Connects many times without a word, keeping the last few hundred open."""


def test_ten_thousand_who_say_nothing_keep_nobody_out(tmp_path: Path) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await tcp.api.new_token("submit")
        before = descriptors()
        words = [str(tcp.port), str(FLOOD), str(KEPT_OPEN), ELSEWHERE]
        flood = asyncio.create_task(poured(*words))
        asked = 0
        while not flood.done():
            assert await tcp.overview(token) == 200
            asked += 1
            await asyncio.wait([flood], timeout=0.01)
        assert await flood == 0
        assert asked > 5
        assert (
            len(tcp.tcp_connections.unidentified) <= tcp_connections.MOST_UNIDENTIFIED
        )
        for unknown in list(tcp.tcp_connections.unidentified):
            unknown.drop()
        await until(lambda: descriptors() < before + 20)

    over_tcp(tmp_path, story, uvloop.run, 2 * PATIENCE_S)


async def poured(*words: str) -> int:
    """Run the flood in a process of its own; give its exit code."""
    flood = await asyncio.create_subprocess_exec(sys.executable, "-c", POUR, *words)
    try:
        return await flood.wait()
    finally:
        if flood.returncode is None:
            flood.kill()


async def until(holds: Callable[[], bool]) -> None:
    """Let the event loop turn until something holds."""
    while not holds():  # noqa: ASYNC110 -- nobody tells
        await asyncio.sleep(0.01)


def descriptors() -> int:
    """How many descriptors this process has open."""
    return len(os.listdir("/proc/self/fd"))


def test_the_server_goes_on_without_free_descriptors(
    tmp_path: Path, run: Callable[..., None]
) -> None:
    async def story(tcp: TcpApi) -> None:
        token = await tcp.api.new_token("read")
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        spare = descriptors() + 20
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare, limits[1]))
        try:
            held = []
            try:
                while True:
                    held.append(await tcp.plain(ELSEWHERE))
            except OSError:
                pass
            for visit in held[len(held) // 2 :]:
                visit.close()
            # The event loop closes them later.
            await asyncio.sleep(0)
            while await tcp.overview(token) != 200:
                pass
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    over_tcp(tmp_path, story, run)


def test_a_port_that_is_taken_is_one_clear_line() -> None:
    (listener,) = bound(Address(HOST, 0))
    with listener:
        port = listener.getsockname()[1]
        with pytest.raises(Refused, match=f"cannot listen on {HOST}:{port}: "):
            bound(Address(HOST, port))
    with pytest.raises(Refused, match=r"cannot listen on no-such-host\.invalid:1"):
        bound(Address("no-such-host.invalid", 1))


def test_a_name_is_listened_on_over_both_protocols() -> None:
    listeners = bound(Address("localhost", 0))
    families = {one.family for one in listeners}
    ports = {one.getsockname()[1] for one in listeners}
    for one in listeners:
        one.close()
    assert socket.AF_INET in families
    assert len(ports) == 1
