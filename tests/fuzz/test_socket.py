"""Raw bytes on a daemon's socket: it answers or hangs up, and goes on as before."""

import contextlib
import json
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.api.server.request_body import LARGEST_BODY
from grass.config import API_PREFIX
from tests.fuzz.bodies import BODIES, PATHS
from tests.fuzz.dose import bounded, examples
from tests.fuzz.garbage import slipped_bytes
from tests.support.homes import GrassHome

pytestmark = pytest.mark.daemon

PATIENCE_S = 10.0
SOON_S = 0.03
PIECE = b" " * (1 << 20)
MIB = len(PIECE)
SAFE = {name: bodies for name, bodies in BODIES.items() if "/daemon/stop" not in name}


def request(name: str, body: bytes, *headers: str) -> bytes:
    """Write a request as a client does."""
    method, _, path = name.partition(" ")
    lines = [f"{method} {API_PREFIX}{path} HTTP/1.1", "Host: grass", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def with_length(name: str, body: bytes) -> bytes:
    return request(name, body, f"Content-Length: {len(body)}", "Connection: close")


REQUESTS = [with_length(name, b"") for name in PATHS if "/config" not in name] + [
    with_length(name, json.dumps(bodies[0]).encode()) for name, bodies in SAFE.items()
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GrassHome]:
    """A daemon that starts nothing, so that no body can run anything."""
    home = GrassHome(tmp_path_factory.mktemp("socket"))
    home.ok("pause")
    before = home.daemon_pid()
    yield home
    after, log = home.daemon_pid(), home.log()
    shown = home.run("show", "--all")
    home.end()
    assert after == before
    assert shown.returncode == 0
    assert "Traceback" not in log


def answered(home: GrassHome, *pieces: bytes, within_s: float = PATIENCE_S) -> bytes:
    """Send bytes and read what comes back, until the daemon hangs up or is silent.

    It may wait for more, as half a request is none.
    """
    answer = b""
    with socket.socket(socket.AF_UNIX) as channel, bounded(2 * PATIENCE_S):
        channel.settimeout(PATIENCE_S)
        channel.connect(str(home.folder / "grass.sock"))
        # A daemon may hang up before it has read all of it.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError, TimeoutError):
            for piece in pieces:
                channel.sendall(piece)
            channel.settimeout(within_s)
            while piece := channel.recv(1 << 16):
                answer += piece
    return answer


def is_paused(home: GrassHome) -> bool:
    return bool(home.client.overview()["daemon"]["paused"])


def check(home: GrassHome, answer: bytes) -> None:
    """Nothing that comes back tells of a defect, and the daemon still serves."""
    assert b"inside grass" not in answer, answer
    assert b"Traceback" not in answer
    assert not answer.startswith(b"HTTP/1.1 5"), answer
    if not is_paused(home):
        home.client.pause()


@examples(120)
@given(data=st.one_of(st.binary(max_size=100), slipped_bytes(REQUESTS)))
def test_any_bytes_are_answered_or_cut_off(home: GrassHome, data: bytes) -> None:
    check(home, answered(home, data, within_s=SOON_S))


@examples(60)
@given(
    name=st.sampled_from(sorted(SAFE)),
    length=st.sampled_from(["-1", "0", "1", "5", "1000000", "9" * 30, "x", "1, 2", ""]),
    body=st.sampled_from([b"", b"{}", b'{"select":["all"]}', b"[" * 1000]),
)
def test_a_wrong_length_is_answered_or_cut_off(
    home: GrassHome, name: str, length: str, body: bytes
) -> None:
    data = request(name, body, f"Content-Length: {length}")
    check(home, answered(home, data, within_s=SOON_S))


@examples(60)
@given(
    name=st.sampled_from(sorted(SAFE)),
    chunks=slipped_bytes([b"2\r\n{}\r\n0\r\n\r\n", b'8\r\n{"select\r\n0\r\n\r\n']),
)
def test_a_body_in_chunks_is_answered_or_cut_off(
    home: GrassHome, name: str, chunks: bytes
) -> None:
    head = request(name, b"", "Transfer-Encoding: chunked", "Connection: close")
    check(home, answered(home, head, chunks, within_s=SOON_S))


def test_a_body_in_chunks_is_understood(home: GrassHome) -> None:
    head = request(
        "POST /pause", b"", "Transfer-Encoding: chunked", "Connection: close"
    )
    assert answered(home, head, b"2\r\n{}\r\n0\r\n\r\n").startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("name", ["POST /jobs", "PUT /queues/q"])
def test_a_body_that_is_too_large_is_refused(home: GrassHome, name: str) -> None:
    size = LARGEST_BODY + MIB
    head = request(name, b"", f"Content-Length: {size}", "Connection: close")
    answer = answered(home, head, *[PIECE] * (size // MIB))
    assert b"HTTP/1.1 413" in answer
    assert b"larger than" in answer
    check(home, answer)


def test_a_body_that_is_too_large_in_chunks_is_refused(home: GrassHome) -> None:
    head = request("POST /jobs", b"", "Transfer-Encoding: chunked", "Connection: close")
    chunk = b"%x\r\n%s\r\n" % (MIB, PIECE)
    chunks = [chunk] * (LARGEST_BODY // MIB + 1)
    answer = answered(home, head, *chunks, b"0\r\n\r\n")
    assert b"larger than" in answer
    check(home, answer)


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"GET /api/v1/overview HTTP/1.1\r\n", b"X-Long: " + b"x" * 65_000 + b"\r\n"),
        (b"GET /api/v1/overview HTTP/1.1\r\nX: ", b"x" * 65_000),
        (b"GET /api/v1/", b"x" * 65_000),
    ],
    ids=["headers", "a header", "a path"],
)
def test_a_head_without_end_is_cut_off(
    home: GrassHome, start: bytes, piece: bytes
) -> None:
    with socket.socket(socket.AF_UNIX) as channel, bounded():
        channel.connect(str(home.folder / "grass.sock"))
        channel.sendall(start)
        with pytest.raises((BrokenPipeError, ConnectionResetError)):
            channel.sendall(piece * 1000)
    assert is_paused(home)


def test_a_caller_that_says_nothing_holds_nobody_up(home: GrassHome) -> None:
    silent = [socket.socket(socket.AF_UNIX) for _ in range(50)]
    for number, channel in enumerate(silent):
        channel.connect(str(home.folder / "grass.sock"))
        channel.sendall(b"POST /api/v1/jobs HTTP/1.1\r\nContent-Length: 9"[:number])
    with bounded():
        assert home.client.overview()["daemon"]["paused"]
    for channel in silent:
        channel.close()
