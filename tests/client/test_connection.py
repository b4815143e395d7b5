"""The client against a real socket, on which a test plays the daemon."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from grass.client.client import Client
from grass.client.connection import open_connection
from grass.client.daemon_launch import daemon_environment
from grass.client.json_codec import decoded, encoded, quoted
from grass.config import Home, user_environment
from grass.errors import NeverFits, NoDaemon, ProtocolError
from tests.client.scripted import CHUNKED, CUT, Daemon, sized

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("GRASS_AUTOSTART", "0")
    return Home(str(tmp_path))


@pytest.fixture
def replies() -> list[bytes]:
    return []


@pytest.fixture
def daemon(home: Home, replies: list[bytes]) -> Iterator[Daemon]:
    playing = Daemon(Path(home.socket), replies)
    yield playing
    playing.close()


@given(VALUES)
def test_json_is_what_the_standard_library_reads(value: object) -> None:
    assert json.loads(encoded(value)) == value
    assert decoded(encoded(value)) == value


@pytest.mark.parametrize("data", [b"", b"{", b"{} {}", b"[1,]", b"nope"])
def test_what_is_not_json_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decoded(data)


def test_what_json_cannot_say_is_refused() -> None:
    with pytest.raises(TypeError):
        encoded({"a": object()})


def test_words_are_escaped_in_paths() -> None:
    assert quoted("a b/ü?7") == "a%20b%2F%C3%BC%3F7"


def test_one_connection_serves_several_calls(
    home: Home, daemon: Daemon, replies: list[bytes]
) -> None:
    replies += [sized(b'{"id":7}'), sized(b'{"id":8}')]
    with Client(home) as client:
        assert [client.job(7)["id"], client.job("last")["id"]] == [7, 8]
    lines = [request["line"] for request in daemon.requests]
    assert lines == ["GET /api/v1/jobs/7 HTTP/1.1", "GET /api/v1/jobs/last HTTP/1.1"]


def test_output_comes_in_chunks(
    home: Home, daemon: Daemon, replies: list[bytes]
) -> None:
    replies.append(CHUNKED + b"3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n")
    replies.append(sized(b'{"id":7}'))
    with Client(home) as client:
        assert b"".join(client.output(7)) == b"abc0123456789"
        assert client.job(7)["id"] == 7


def test_following_goes_on_where_a_restart_cut_it_off(
    home: Home, daemon: Daemon, replies: list[bytes]
) -> None:
    replies += [CHUNKED + b"3\r\nabc\r\n" + CUT, CUT]
    replies.append(CHUNKED + b"2\r\nab\r\n4\r\ncdef\r\n0\r\n\r\n")
    with Client(home) as client:
        assert b"".join(client.output(7, follow=True)) == b"abcdef"


def test_a_problem_becomes_the_error_it_names(
    home: Home, daemon: Daemon, replies: list[bytes]
) -> None:
    problem = {"code": "never-fits", "detail": "gpu 9 of 4", "hint": "see `grass show`"}
    replies.append(sized(json.dumps(problem).encode(), "422 No"))
    with Client(home) as client, pytest.raises(NeverFits) as caught:
        client.overview()
    assert (caught.value.message, caught.value.hint) == (
        "gpu 9 of 4",
        "see `grass show`",
    )


def test_a_peer_that_does_not_speak_http_is_an_error(
    home: Home, daemon: Daemon, replies: list[bytes]
) -> None:
    replies.append(b"SSH-2.0-x\r\n\r\n")
    with Client(home) as client, pytest.raises(ProtocolError, match="is not HTTP"):
        client.overview()


def test_an_enqueue_that_was_cut_off_is_sent_again_with_its_key(
    home: Home, daemon: Daemon, replies: list[bytes]
) -> None:
    replies += [CUT, CUT, sized(b'{"first":7,"last":7,"hint":""}')]
    with Client(home) as client:
        assert client.enqueue(["true"]) == 7
    keys = {request["body"]["key"] for request in daemon.requests}
    assert (len(daemon.requests), len(keys)) == (3, 1)


def test_a_call_that_changes_something_is_not_sent_twice(
    home: Home, daemon: Daemon, replies: list[bytes]
) -> None:
    replies.append(CUT)
    with Client(home) as client, pytest.raises(NoDaemon, match="went away"):
        client.cancel(["7"])
    assert len(daemon.requests) == 1


def test_many_jobs_travel_in_one_call(
    home: Home, daemon: Daemon, replies: list[bytes]
) -> None:
    replies.append(sized(b'{"first":1,"last":10000,"hint":""}'))
    with Client(home) as client:
        done = client.enqueue_many([["echo", str(n)] for n in range(10000)], queue="q1")
    assert done["last"] == 10000
    [request] = daemon.requests
    assert request["body"]["jobs"][9999] == {"command": ["echo", "9999"]}
    assert request["body"]["defaults"] == {"queue": "q1"}


def test_bytes_that_are_not_utf8_survive(
    home: Home, daemon: Daemon, replies: list[bytes]
) -> None:
    replies.append(sized(b'{"first":1,"last":1,"hint":""}'))
    with Client(home) as client:
        client.enqueue(["ls", "a\udcff"])
    assert daemon.requests[0]["body"]["jobs"] == [{"command": ["ls", "a\udcff"]}]


def test_a_path_too_long_for_a_socket_is_reached(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        (tmp_path / "s").symlink_to(folder)
        listener.bind(str(tmp_path / "s" / "grass.sock"))
        listener.listen()
        found = open_connection(str(folder / "grass.sock"))
    assert found is not None
    found.close()


def test_a_stale_socket_counts_as_no_daemon(home: Home) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(home.socket)
    with pytest.raises(NoDaemon, match="no daemon is running"):
        Client(home).overview()


def test_a_stop_is_remembered(home: Home) -> None:
    Path(home.stopped).touch()
    with pytest.raises(NoDaemon, match="grass was stopped"):
        Client(home).overview()


def test_a_job_in_a_job_does_not_inherit_its_variables() -> None:
    inside = {"GRASS_ATTEMPT_ID": "x", "GRASS_GPU": "0", "GRASS_HOME": "h", "A": "1"}
    assert user_environment(inside) == {"GRASS_HOME": "h", "A": "1"}
    assert user_environment({"GRASS_GPU": "0"}) == {"GRASS_GPU": "0"}


def test_a_daemon_has_no_choice_of_gpus_in_its_environment() -> None:
    caller = {"CUDA_VISIBLE_DEVICES": "1", "GRASS_ATTEMPT_ID": "x", "A": "1"}
    assert daemon_environment(caller, "h") == {"GRASS_HOME": "h", "A": "1"}
