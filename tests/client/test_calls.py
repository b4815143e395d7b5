"""What the client asks, against a real socket on which a test plays the daemon."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qs, urlsplit

import pytest

from grass.client import broker_session, long_calls
from grass.client.client import Client
from grass.client.tls_connection import BrokerRoute
from grass.config import Home
from grass.errors import NoBroker, NoDaemon, NoDatabase, NotFound
from tests.client.scripted import CHUNKED, CUT, Daemon, sized

DONE = sized(b'{"jobs":[7],"warnings":[],"changed":true}')


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("GRASS_AUTOSTART", "0")
    return Home(str(tmp_path))


@contextmanager
def playing(home: Home, *replies: bytes) -> Iterator[Daemon]:
    daemon = Daemon(Path(home.socket), list(replies))
    try:
        yield daemon
    finally:
        daemon.close()


def asked(daemon: Daemon, number: int = 0) -> tuple[str, str, dict[str, list[str]]]:
    method, address, _ = daemon.requests[number]["line"].split(" ")
    parts = urlsplit(address)
    return method, parts.path.removeprefix("/api/v1"), parse_qs(parts.query)


def chunked(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces)


def event(seq: int) -> bytes:
    data = json.dumps({"seq": seq, "kind": "held"}).encode()
    return b"id: %d\nevent: held\ndata: %s\n\n" % (seq, data)


@pytest.mark.parametrize(
    ("call", "request_line", "body"),
    [
        (lambda c: c.select(["7"]), "POST /jobs/select", {"select": ["7"]}),
        (lambda c: c.hold(["7"]), "POST /jobs/hold", {"select": ["7"]}),
        (lambda c: c.release(["7"]), "POST /jobs/release", {"select": ["7"]}),
        (lambda c: c.suspend(["7"]), "POST /jobs/suspend", {"select": ["7"]}),
        (lambda c: c.continue_(["7"]), "POST /jobs/continue", {"select": ["7"]}),
        (
            lambda c: c.signal(["7"], 10),
            "POST /jobs/signal",
            {"select": ["7"], "signal": 10},
        ),
        (lambda c: c.remove(["7"]), "POST /jobs/remove", {"select": ["7"]}),
        (
            lambda c: c.cancel(["7"], signal=2),
            "POST /jobs/cancel",
            {"select": ["7"], "grace_s": None, "signal": 2},
        ),
        (
            lambda c: c.rerun(["7"], hold=True, command=["x"]),
            "POST /jobs/rerun",
            {"select": ["7"], "hold": True, "command": ["x"]},
        ),
        (
            lambda c: c.edit(["7"], time_limit_s=None),
            "POST /jobs/edit",
            {"select": ["7"], "time_limit_s": None},
        ),
        (
            lambda c: c.edit_queue("q 1", {"max_fails": 3}),
            "PATCH /queues/q%201",
            {"max_fails": 3},
        ),
        (
            lambda c: c.add_capacity("{gpu:1}"),
            "POST /capacity/add",
            {"capacity": "{gpu:1}", "worker": None},
        ),
        (
            lambda c: c.remove_capacity("gpu:4", "desk"),
            "POST /capacity/remove",
            {"unit": "gpu:4", "worker": "desk"},
        ),
        (
            lambda c: c.drain("gpu:2"),
            "POST /drain",
            {"unit": "gpu:2", "worker": None},
        ),
        (
            lambda c: c.resume(unit="gpu:2"),
            "POST /resume",
            {"queue": None, "unit": "gpu:2", "worker": None},
        ),
        (lambda c: c.explain("last"), "GET /jobs/last/explain", None),
        (lambda c: c.config(), "GET /config", None),
    ],
)
def test_every_method_asks_its_route(
    home: Home, call: Callable[[Client], Any], request_line: str, body: object
) -> None:
    with playing(home, DONE) as daemon, Client(home) as client:
        assert call(client)["jobs"] == [7]
    method, path, _ = asked(daemon)
    assert f"{method} {path}" == request_line
    assert daemon.requests[0]["body"] == body


def test_the_daemons_version_is_remembered(home: Home) -> None:
    told = b"HTTP/1.1 %s\r\nGrass-Version: 9.9\r\nContent-Length: 2\r\n\r\n{}"
    with (
        playing(home, told % b"200 OK", sized(b'{"id":7}')) as _,
        Client(home) as client,
    ):
        assert client.daemon_version is None
        client.overview()
        assert client.daemon_version == "9.9"
        client.job(7)
        client.close()
        assert client.daemon_version == "9.9"


def test_a_problem_tells_the_version_too(home: Home) -> None:
    problem = b'{"code":"not-found","detail":"no","hint":""}'
    reply = b"HTTP/1.1 404 No\r\nGrass-Version: 9.9\r\nContent-Length: %d\r\n\r\n%s"
    with playing(home, reply % (len(problem), problem)), Client(home) as client:
        with pytest.raises(NotFound):
            client.job(7)
        assert client.daemon_version == "9.9"


def test_reading_is_repeated_while_a_daemon_restarts(home: Home) -> None:
    replies = [CUT, CUT, CUT, sized(b'{"id":7}')]
    with playing(home, *replies) as daemon, Client(home) as client:
        assert client.job(7)["id"] == 7
    assert len(daemon.requests) == 4


def test_a_daemon_that_does_not_come_back_is_given_up(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_session, "RECONNECT_S", 0.1)
    with Client(home) as client:
        with playing(home, sized(b'{"id":7}')):
            client.job(7)
            client.close()
        Path(home.socket).unlink()
        with pytest.raises(NoDaemon, match="went away before it answered"):
            client.job(7)


def unavailable(code: str, detail: str) -> bytes:
    """Return a reply that says why there is no other."""
    problem = json.dumps({"code": code, "detail": detail, "hint": ""}).encode()
    head = b"HTTP/1.1 503 No\r\nContent-Length: %d\r\n\r\n"
    return head % len(problem) + problem


def test_a_wait_and_a_follower_outlast_a_restart_of_the_database(home: Home) -> None:
    away = unavailable("no-database", "the database does not answer")
    stream = CHUNKED + chunked(event(8))
    replies = [away, away, sized(b'{"jobs":[{"id":7}]}'), away, stream]
    with playing(home, *replies) as daemon, Client(home) as client:
        assert client.wait(["7"])[0]["id"] == 7
        assert next(client.follow_events(after=7))["seq"] == 8
    assert len(daemon.requests) == 5


def test_a_follower_of_an_unreachable_worker_outlasts_a_restart_of_the_database(
    home: Home,
) -> None:
    unreachable = unavailable("unreachable", "worker `desk` is unreachable")
    away = unavailable("no-database", "the database does not answer")
    back = sized(b'{"id":7,"unreachable":false}')
    replies = [unreachable, away, back, CHUNKED + chunked(b"over\n")]
    with playing(home, *replies) as daemon, Client(home) as client:
        assert next(iter(client.output(7, follow=True))) == b"over\n"
    assert len(daemon.requests) == 4


@pytest.mark.parametrize("state", ["running", "succeeded"])
def test_a_follower_goes_on_over_leaders_that_do_not_have_the_worker_yet(
    home: Home, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(long_calls, "LOOK_S", 0.01)
    begun = CHUNKED.removesuffix(b"\r\n") + b"Grass-Begin: 1:0\r\n\r\n"
    unreachable = unavailable("unreachable", "worker `desk` is unreachable")
    job = sized(b'{"id":7,"state":"%s","unreachable":false}' % state.encode())
    last = begun + chunked(b"one\n") + chunked(b"two\n") + b"0\r\n\r\n"
    replies = [begun + chunked(b"one\n") + CUT, *[unreachable, job] * 3, last]
    with playing(home, *replies), Client(home) as client:
        assert b"".join(client.output(7, follow=True)) == b"one\ntwo\n"


def test_a_call_goes_back_to_this_machines_daemon_when_the_leader_is_gone(
    home: Home,
) -> None:
    class Gone(BrokerRoute):
        """The way to a leader that a standby has named, and that has died since."""

        def __init__(self) -> None:
            super().__init__("10.0.0.7:7500", self._refuse, self._refuse)

        def _refuse(self, *_: object) -> NoReturn:
            raise NoBroker("10.0.0.7:7500 does not answer")

    with playing(home, sized(b'{"id":7}')), Client(home) as client:
        client._route = Gone()
        assert client.job(7)["id"] == 7


def test_an_enqueue_in_doubt_is_repeated_with_its_key(home: Home) -> None:
    doubt = unavailable("commit-in-doubt", "the database does not answer")
    away = unavailable("no-database", "the database does not answer")
    replies = [doubt, away, sized(b'{"first":7,"last":7,"hint":""}'), away]
    with playing(home, *replies) as daemon, Client(home) as client:
        assert client.enqueue(["true"]) == 7
        with pytest.raises(NoDatabase):
            client.enqueue(["true"])
    keys = [one["body"]["key"] for one in daemon.requests]
    assert keys[0] == keys[1] == keys[2] != keys[3]


def test_a_wait_that_lasted_has_another_outage_before_it(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several failovers in a row do not add up to one that takes too long."""
    monkeypatch.setattr(broker_session, "RECONNECT_S", 0.05)
    monkeypatch.setattr(broker_session, "_LASTED_S", -1.0)
    replies = [*[CUT] * 5, sized(b'{"jobs":[{"id":7}]}')]
    with playing(home, *replies) as daemon, Client(home) as client:
        assert client.wait(["7"])[0]["id"] == 7
    assert len(daemon.requests) == 6


def test_a_database_that_stays_away_is_the_reason_in_the_end(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_session, "RECONNECT_S", 0.1)
    away = unavailable("no-database", "the database does not answer")
    with (
        playing(home, *[away] * 20),
        Client(home) as client,
        pytest.raises(NoDatabase, match="the database does not answer"),
    ):
        client.wait(["7"])


def test_a_worker_whose_broker_is_away_is_not_asked_again(home: Home) -> None:
    with (
        playing(home, unavailable("no-broker", "desk:7500 is away")) as daemon,
        Client(home) as client,
        pytest.raises(NoBroker, match="desk:7500 is away"),
    ):
        client.overview()
    assert len(daemon.requests) == 1


def test_jobs_are_read_page_by_page(home: Home) -> None:
    pages = [b'{"jobs":[{"id":1},{"id":2}],"next":2}', b'{"jobs":[],"next":null}']
    with playing(home, *map(sized, pages)) as daemon, Client(home) as client:
        found = client.jobs(states=["failed"], project="p", select=["1-9", "last"])
        assert [job["id"] for job in found] == [1, 2]
    _, path, first = asked(daemon)
    assert path == "/jobs"
    assert (first["state"], first["project"]) == (["failed"], ["p"])
    assert (first["select"], first["order"]) == (["1-9", "last"], ["oldest"])
    assert "after" not in first
    assert asked(daemon, 1)[2] == {**first, "after": ["2"]}


def test_the_newest_jobs_may_come_first(home: Home) -> None:
    pages = [b'{"jobs":[{"id":9}],"next":9}', b'{"jobs":[{"id":8}],"next":null}']
    with playing(home, *map(sized, pages)) as daemon, Client(home) as client:
        assert [job["id"] for job in client.jobs(newest_first=True)] == [9, 8]
    assert asked(daemon, 1)[2]["before"] == ["9"]


def test_past_events_are_read_page_by_page(home: Home) -> None:
    pages = [b'{"events":[{"seq":5}],"next":5}', b'{"events":[{"seq":6}],"next":null}']
    with playing(home, *map(sized, pages)) as daemon, Client(home) as client:
        found = client.events(after=4, job=7, kind="held")
        assert [event["seq"] for event in found] == [5, 6]
    first = {"limit": ["1000"], "after": ["4"], "job": ["7"], "kind": ["held"]}
    assert asked(daemon)[2] == first
    assert asked(daemon, 1)[2] == {**first, "after": ["5"]}


def test_following_events_goes_on_where_a_restart_cut_it_off(home: Home) -> None:
    begin = b"id: 40\n\n"
    replies = [
        CHUNKED + chunked(begin) + CUT,
        CHUNKED + chunked(b"id: 40\n", b"\n" + event(41)[:9], event(41)[9:]) + CUT,
        CHUNKED + chunked(event(42) + event(43)) + b"0\r\n\r\n",
        CHUNKED + chunked(event(44)) + CUT,
    ]
    with playing(home, *replies) as daemon, Client(home) as client:
        following = client.follow_events()
        assert [next(following)["seq"] for _ in range(4)] == [41, 42, 43, 44]
    queries = [asked(daemon, number)[2] for number in range(4)]
    assert queries == [{}, {"after": ["40"]}, {"after": ["41"]}, {"after": ["43"]}]


def test_following_events_ends_with_the_daemon_for_good(home: Home) -> None:
    with Client(home) as client:
        with playing(home, CHUNKED + chunked(event(1)) + CUT):
            following = client.follow_events()
            assert next(following)["seq"] == 1
            Path(home.stopped).touch()
        Path(home.socket).unlink()
        with pytest.raises(NoDaemon, match="grass was stopped"):
            next(following)


def test_following_from_the_last_lines_begins_there_again(home: Home) -> None:
    head = CHUNKED.replace(b"\r\n\r\n", b"\r\nGrass-Begin: 2:100\r\n\r\n")
    replies = [
        head + chunked(b"ab", b"c") + CUT,
        head + chunked(b"abcd", b"ef") + b"0\r\n\r\n",
    ]
    with playing(home, *replies) as daemon, Client(home) as client:
        output = client.output(7, follow=True, tail=3)
        assert b"".join(output) == b"abcdef"
    _, path, first = asked(daemon)
    assert (path, first) == ("/jobs/7/output", {"follow": ["1"], "tail": ["3"]})
    assert asked(daemon, 1)[2] == {"follow": ["1"], "begin": ["2:100"]}


def test_the_last_lines_are_asked_for(home: Home) -> None:
    with playing(home, sized(b"x\n")) as daemon, Client(home) as client:
        assert b"".join(client.output(7, tail=1, attempt=2, stderr=True)) == b"x\n"
    wanted = {"attempt": ["2"], "stream": ["stderr"], "tail": ["1"]}
    assert asked(daemon)[2] == wanted
