"""A broker that is away or frozen: limits are kept, and one notice is given."""

import socket
import threading
import time
from collections.abc import Iterator
from queue import SimpleQueue

import pytest

from grass.client import broker_session, connection, patience, tls_connection
from grass.client.client import Client
from grass.client.credentials import Credentials
from grass.client.patience import Outage
from grass.client.tls_connection import TlsConnection
from grass.config import Home
from grass.errors import NoBroker, TimedOut
from grass.model.addresses import Address
from tests.cli.fake_broker import FakeBroker
from tests.support.patience import PATIENCE_S

from .conftest import Play

TEXT = "the broker cannot be reached"


@pytest.fixture
def moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "MOMENT_S", 0.05)


def heard_by(watched: Outage) -> SimpleQueue[str]:
    heard: SimpleQueue[str] = SimpleQueue()
    watched.tell = heard.put
    return heard


def test_an_outage_gets_one_notice_and_the_next_one_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience, "MOMENT_S", 0.0)
    watched = Outage()
    heard = heard_by(watched)
    for client in (1, 2, 1):
        watched.note(client, TEXT)
    watched.end(1)
    watched.note(1, TEXT)
    watched.end(1)
    assert (heard.get_nowait(), watched.told) == (TEXT, TEXT)
    assert heard.empty()
    watched.end(2)
    assert watched.told == ""
    watched.note(1, TEXT)
    assert heard.get_nowait() == TEXT


def test_a_short_outage_gets_no_notice() -> None:
    watched = Outage()
    heard = heard_by(watched)
    for _ in range(2):
        watched.note(1, TEXT)
        watched.note(2, TEXT)
        watched.end(1)
        watched.end(2)
    assert (watched.told, heard.empty()) == ("", True)


@pytest.mark.usefixtures("moment")
def test_following_gives_notice_that_the_broker_is_away(
    home: Home, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = play()
    broker.joined_by(home)

    def vanish(_body: object) -> bytes:
        broker.stop_listening()
        return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"

    broker.answers["GET /jobs/7/output?follow=1"] = vanish
    broker.cut_after = 1
    monkeypatch.setattr(broker_session, "RECONNECT_S", 0.5)
    with Client(home) as client:
        # The clients of one command share the notice.
        heard = heard_by(client.beside().outage)
        following = client.output(7, follow=True)
        assert next(following) == b"x"
        with pytest.raises(NoBroker):
            next(following)
    told = heard.get(timeout=30)
    assert told.startswith(f"the broker at {broker.address} cannot be reached; ")
    assert heard.empty()


class Told(Exception):
    """Ends a wait at its first notice."""


def _raise_told(text: str) -> None:
    raise Told(text)


@pytest.fixture
def dead() -> Iterator[Address]:
    """An address where connecting is never answered: its queue is full."""
    with socket.socket() as full, socket.socket() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting.connect(full.getsockname())
        yield Address(*full.getsockname())


@pytest.mark.usefixtures("moment")
@pytest.mark.parametrize("cut_off", [True, False])
def test_the_notice_comes_while_connecting_is_not_answered(
    home: Home,
    play: Play,
    dead: Address,
    monkeypatch: pytest.MonkeyPatch,
    *,
    cut_off: bool,
) -> None:
    monkeypatch.setattr(tls_connection, "CONNECT_S", 60.0)
    monkeypatch.setattr(connection, "PROBE_AFTER_S", 0.1)
    monkeypatch.setattr(patience, "_PROBE_S", 0.1)
    broker, answered = play(), threading.Event()
    broker.joined_by(home)

    def vanish(_body: object) -> bytes:
        Credentials.load(home).add(broker.known()._replace(addresses=(dead,)))
        if not cut_off:
            # Its machine is gone: the place that the connection leads to is dead.
            assert isinstance(client._connection, TlsConnection)
            client._connection.address = dead
            answered.wait()
        return b""

    broker.answers["POST /jobs/wait"] = vanish
    broker.cut_after = 1
    began = time.monotonic()
    with Client(home) as client:
        client.outage.tell = _raise_told
        try:
            with pytest.raises(Told, match=r"cannot be reached|does not answer"):
                client.wait(["7"])
        finally:
            answered.set()
    assert time.monotonic() - began < 30


@pytest.fixture
def frozen() -> Iterator[Address]:
    """The address of a listener that never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield Address(*silent.getsockname())


def test_a_wait_keeps_its_limit_at_a_daemon_that_does_not_answer(home: Home) -> None:
    with socket.socket(socket.AF_UNIX) as silent, Client(home) as client:
        silent.bind(home.socket)
        silent.listen()
        began = time.monotonic()
        with pytest.raises(TimedOut, match="the daemon has not answered"):
            client.wait(["7"], 2.0)
        assert 2 <= time.monotonic() - began < patience.LIMIT_S


def test_a_wait_keeps_its_limit_at_a_broker_that_is_frozen(
    home: Home, play: Play, frozen: Address
) -> None:
    Credentials.load(home).add(play().known()._replace(addresses=(frozen,)))
    with Client(home) as client, pytest.raises(TimedOut, match="has not answered"):
        client.wait(["last"], 2.0)


@pytest.mark.usefixtures("moment")
def test_a_wait_keeps_its_limit_while_the_broker_is_away(
    home: Home, broker: FakeBroker
) -> None:
    broker.joined_by(home)

    def vanish(_body: object) -> bytes:
        broker.stop_listening()
        return b""

    broker.answers["POST /jobs/wait"] = vanish
    broker.cut_after = 1
    began = time.monotonic()
    with Client(home) as client:
        heard = heard_by(client.outage)
        with pytest.raises(TimedOut, match="has not answered"):
            client.wait(["7"], 2.0)
    assert 2 <= time.monotonic() - began < broker_session.RECONNECT_S
    assert "cannot be reached" in heard.get(timeout=30)
    assert heard.empty()


def test_a_wait_with_a_limit_returns_the_brokers_answer(
    home: Home, broker: FakeBroker
) -> None:
    broker.joined_by(home)
    broker.answers["POST /jobs/wait"] = {"jobs": [{"id": 7}]}
    with Client(home) as client:
        assert client.wait(["7"], 60) == [{"id": 7}]


@pytest.fixture
def broker(play: Play) -> FakeBroker:
    return play()


def test_several_dead_addresses_share_the_time_of_one(
    home: Home, play: Play, frozen: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_connection, "CONNECT_S", 1.0)
    places = (frozen, frozen._replace(host="localhost"), Address("127.0.0.1", 1))
    Credentials.load(home).add(play().known()._replace(addresses=places))
    began = time.monotonic()
    with Client(home) as client, pytest.raises(NoBroker) as caught:
        client.job(7)
    assert time.monotonic() - began < PATIENCE_S / 2
    assert caught.value.message == (
        f"the broker at {places[0]} cannot be reached: no TLS within 1 s; "
        f"nor was it found at {places[1]}, {places[2]}"
    )


def test_a_broker_is_found_while_an_earlier_address_hangs(
    home: Home, broker: FakeBroker, frozen: Address
) -> None:
    places = (frozen, broker.address)
    Credentials.load(home).add(broker.known()._replace(addresses=places))
    broker.answers["GET /jobs/7"] = {"id": 7}
    began = time.monotonic()
    with Client(home) as client:
        assert client.job(7) == {"id": 7}
    assert time.monotonic() - began < tls_connection.CONNECT_S
