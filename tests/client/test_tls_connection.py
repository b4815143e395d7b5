"""The client and a broker on another machine: real TLS, a real key, a real token."""

import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from grass.client import broker_session, tls_connection
from grass.client.client import Client
from grass.client.credentials import Credentials
from grass.client.tls_connection import open_broker
from grass.config import Home
from grass.errors import NoBroker, NoDaemon, Unauthorized, Untrusted, UsageError
from grass.model.addresses import Address, Invitation
from tests.cli.fake_broker import FakeBroker
from tests.cli.fake_daemon import FakeDaemon, problem

from .conftest import Play

JOB = {"id": 7}
SENT = {"first": 7, "last": 7, "hint": ""}


@pytest.fixture
def broker(play: Play) -> FakeBroker:
    found = play()
    found.answers["GET /jobs/7"] = JOB
    found.answers["POST /jobs"] = SENT
    return found


@contextmanager
def stranger(*said: bytes) -> Iterator[tuple[Address, list[bytes]]]:
    """Listen on a port; send something to each client, and note what it sends."""
    heard: list[bytes] = []

    def serve() -> None:
        try:
            while True:
                channel, _ = listener.accept()
                with channel:
                    for text in said:
                        channel.sendall(text)
                    heard.append(channel.recv(65536) if said else b"")
        except OSError:
            return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        yield Address(*listener.getsockname()), heard
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def closed_port() -> Address:
    """Return a port on which no process listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return Address(*listener.getsockname())


def test_the_joined_broker_is_asked_with_the_machines_token(
    home: Home, broker: FakeBroker
) -> None:
    broker.joined_by(home)
    with Client(home) as client:
        assert (client.remote, client.peer) == (
            True,
            f"the broker at {broker.address}",
        )
        assert client.job(7) == JOB
        assert client.job(7) == JOB
    assert broker.tokens == ["laptop.secret"] * 2
    assert broker.connections == 1


def test_a_broker_is_known_by_its_key_wherever_it_answers(
    home: Home, play: Play, broker: FakeBroker
) -> None:
    moved = broker.known()._replace(addresses=(Address("127.0.0.1", 1),))
    Credentials.load(home).add(moved)
    Credentials.load(home).add(play().known(token="other.token"))
    with Client(home, broker=str(broker.address)) as client:
        assert client.job(7) == JOB
    assert broker.tokens == ["laptop.secret"]


def test_which_broker_is_asked(
    home: Home, play: Play, broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, named, joined = broker, play(), play()
    here = FakeDaemon(Path(home.folder))
    for place in (asked, named, joined):
        place.joined_by(home)
    named.answers["GET /jobs/7"] = {"id": 8}
    joined.answers["GET /jobs/7"] = {"id": 9}
    here.answers["GET /jobs/7"] = {"id": 10}

    def found(broker: str | None = None) -> object:
        with Client(home, broker=broker) as client:
            return client.job(7)["id"]

    assert found() == 9
    monkeypatch.setenv("GRASS_BROKER", str(named.address))
    assert found() == 8
    assert found(str(asked.address)) == 7
    assert found("local") == 10
    monkeypatch.setenv("GRASS_BROKER", "local")
    assert found() == 10
    monkeypatch.setenv("GRASS_BROKER", "")
    assert found() == 9
    for place in (asked, named, joined):
        Credentials.load(home).remove(place.pin)
    assert found() == 10
    here.close()


def test_a_broker_that_was_not_joined_is_told_nothing(
    home: Home, broker: FakeBroker
) -> None:
    with (
        Client(home, broker=str(broker.address)) as client,
        pytest.raises(Untrusted) as caught,
    ):
        client.enqueue(["true"])
    assert caught.value.message == (
        f"the broker at {broker.address} proves the key {broker.pin}, "
        "which this machine has not joined"
    )
    assert "grass join" in caught.value.hint
    assert broker.connections == 1
    assert broker.asked == []


def test_another_key_at_the_joined_address_is_told_nothing(
    home: Home, play: Play, broker: FakeBroker
) -> None:
    Credentials.load(home).add(play().known()._replace(addresses=(broker.address,)))
    with Client(home) as client, pytest.raises(Untrusted, match="not the broker's"):
        client.job(7)
    assert broker.asked == []


def test_an_expired_certificate_is_refused_before_anything_is_sent(
    home: Home, play: Play
) -> None:
    broker = play(lasts=timedelta(days=-1))
    broker.joined_by(home)
    with Client(home) as client, pytest.raises(Untrusted, match="expired on") as caught:
        client.job(7)
    assert str(broker.address) in caught.value.message
    assert broker.asked == []


def test_a_broker_that_is_not_there_is_named(home: Home) -> None:
    address = closed_port()
    with Client(home, broker=str(address)) as client, pytest.raises(NoBroker) as caught:
        client.job(7)
    assert caught.value.message == (
        f"the broker at {address} cannot be reached: connection refused"
    )
    assert caught.value.hint


def test_a_name_that_means_nothing_is_named(home: Home) -> None:
    with (
        Client(home, broker="no-such-host.invalid") as client,
        pytest.raises(
            NoBroker, match=r"no-such-host.invalid:7500 cannot be reached: "
        ) as caught,
    ):
        client.job(7)
    assert "--advertise" in str(caught.value.hint)


def test_what_does_not_speak_tls_is_told_nothing(home: Home, play: Play) -> None:
    for said in ([b"SSH-2.0-OpenSSH_9\r\n"], [b"HTTP/1.1 400 Bad Request\r\n\r\n"], []):
        with stranger(*said) as (address, heard):
            Credentials.load(home).add(play().known()._replace(addresses=(address,)))
            with Client(home) as client, pytest.raises(NoBroker) as caught:
                client.enqueue(["true"])
        assert f"the broker at {address} cannot be reached: " in caught.value.message
        assert all(b"laptop.secret" not in one for one in heard)


def test_tls_before_1_3_is_refused(home: Home, play: Play, broker: FakeBroker) -> None:
    broker.joined_by(home)
    broker._context.maximum_version = ssl.TLSVersion.TLSv1_2
    with Client(home) as client, pytest.raises(NoBroker, match=r"not speak TLS 1\.3"):
        client.job(7)
    assert broker.asked == []


def test_what_says_nothing_is_given_up(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_connection, "CONNECT_S", 0.2)
    monkeypatch.setattr(tls_connection, "_LEAST_S", 0.2)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        Client(home, broker=str(Address(*silent.getsockname()))) as client,
        pytest.raises(NoBroker, match=r"cannot be reached: no TLS within 0\.2 s"),
    ):
        client.job(7)


def test_an_address_that_is_none_is_refused_by_its_origin(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UsageError, match="--broker: "):
        Client(home, broker="a b")
    monkeypatch.setenv("GRASS_BROKER", "h:port")
    with pytest.raises(UsageError, match="GRASS_BROKER: "):
        Client(home)


def test_a_broker_is_looked_for_at_all_its_addresses(
    home: Home, play: Play, broker: FakeBroker
) -> None:
    other = play()
    places = (closed_port(), other.address, broker.address)
    Credentials.load(home).add(broker.known()._replace(addresses=places))
    with Client(home) as client:
        assert client.job(7) == JOB
    assert other.asked == []
    with Client(home, broker=f"{closed_port()},{broker.address}") as client:
        assert client.job(7) == JOB


def test_a_broker_with_an_ipv6_address_is_reached(home: Home, play: Play) -> None:
    broker = play(host="::1")
    broker.answers["GET /jobs/7"] = JOB
    broker.joined_by(home)
    with Client(home, broker=f"[::1]:{broker.address.port}") as client:
        assert client.job(7) == JOB


def test_the_directory_travels_but_neither_environment_nor_umask(
    home: Home, broker: FakeBroker
) -> None:
    broker.joined_by(home)
    with Client(home) as client:
        assert client.enqueue(["true"], env={"A": "1"}) == 7
    [body] = broker.bodies("POST /jobs")
    assert set(body) == {"jobs", "defaults", "key", "directory"}
    assert body["directory"] == os.getcwd()
    assert body["defaults"] == {"env": {"A": "1"}}


def test_a_token_that_does_not_count_is_one_error(
    home: Home, broker: FakeBroker
) -> None:
    broker.joined_by(home)
    broker.answers["GET /jobs/7"] = problem("unauthorized", "no", "`grass join` again")
    with Client(home) as client, pytest.raises(Unauthorized, match="again"):
        client.job(7)


def test_a_refusal_is_read_also_when_the_body_was_not_wanted(
    home: Home, broker: FakeBroker
) -> None:
    broker.joined_by(home)
    told = json.dumps(problem("unauthorized", "no such token", "join")).encode()
    head = b"HTTP/1.1 401 No\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    broker.refusal = head % len(told) + told
    with Client(home) as client, pytest.raises(Unauthorized, match="no such token"):
        client.enqueue_many([["x" * 1000]] * 30_000)


def test_a_renewed_token_is_used_with_the_next_connection(
    home: Home, broker: FakeBroker
) -> None:
    broker.joined_by(home)
    with Client(home) as client:
        client.job(7)
        broker.joined_by(home, token="laptop.newer")
        client.close()
        client.job(7)
        Credentials.load(home).remove(broker.pin)
        client.close()
        with pytest.raises(Unauthorized, match="has left its broker"):
            client.job(7)
    assert broker.tokens == ["laptop.secret", "laptop.newer"]


def test_a_kept_connection_that_was_closed_is_opened_anew_for_a_change(
    home: Home, broker: FakeBroker
) -> None:
    """A person may think for longer than a broker keeps an idle connection."""
    broker.joined_by(home)
    text = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
    broker.answers["GET /config"] = text
    broker.answers["POST /jobs/cancel"] = {"jobs": [7]}
    with Client(home) as client:
        client.config()
        broker.hang_up()
        assert client.cancel(["7"]) == {"jobs": [7]}
    assert broker.connections == 2


def test_an_enqueue_that_was_cut_off_is_sent_again_with_its_key(
    home: Home, broker: FakeBroker
) -> None:
    broker.joined_by(home)
    broker.answers["POST /jobs"] = [b"", b"HTTP/1.1 200 OK\r\n", SENT]
    with Client(home) as client:
        broker.cut_after = 2
        assert client.enqueue(["true"]) == 7
    keys = {body["key"] for body in broker.bodies("POST /jobs")}
    assert (len(broker.asked), len(keys)) == (3, 1)


def test_a_broker_that_stays_away_is_named_when_patience_ends(
    home: Home, broker: FakeBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broker_session, "RECONNECT_S", 0.3)
    broker.joined_by(home)
    broker.answers["POST /jobs"] = [b""]
    broker.cut_after = 1
    Path(home.stopped).touch()  # A stop of this machine's daemon says nothing here.
    with Client(home) as client:

        def vanish(_body: object) -> bytes:
            broker.stop_listening()
            return b""

        broker.answers["POST /jobs"] = vanish
        with pytest.raises(NoBroker, match="cannot be reached"):
            client.enqueue(["true"])
    assert len(broker.asked) == 1


def test_a_change_that_was_cut_off_names_the_broker(
    home: Home, broker: FakeBroker
) -> None:
    broker.joined_by(home)
    broker.cut_after = 1
    broker.answers["POST /jobs/cancel"] = b""
    with Client(home) as client, pytest.raises(NoDaemon) as caught:
        client.cancel(["7"])
    assert caught.value.message == (
        f"the broker at {broker.address} went away before it answered"
    )
    assert len(broker.asked) == 1


def test_a_daemon_is_never_started_for_another_machines_broker(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRASS_AUTOSTART", "1")
    with (
        Client(home, broker=str(closed_port())) as client,
        pytest.raises(NoBroker),
    ):
        client.job(7)
    assert os.listdir(home.folder) == []


def test_a_second_client_goes_to_the_same_broker(
    home: Home, play: Play, broker: FakeBroker
) -> None:
    broker.joined_by(home)
    play().joined_by(home)
    with (
        Client(home, broker=str(broker.address)) as client,
        client.beside(may_start=False) as aside,
    ):
        assert aside.job(7) == JOB
    with Client(home, broker="local") as client, client.beside() as aside:
        assert not aside.remote


def test_output_is_followed_over_tls(home: Home, broker: FakeBroker) -> None:
    broker.joined_by(home)
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    piece = os.urandom(300_000)
    whole = head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(piece), piece)
    broker.answers["GET /jobs/7/output?follow=1"] = whole
    with Client(home) as client:
        assert b"".join(client.output(7, follow=True)) == piece


def test_joining_shows_the_code_only_to_the_key_of_the_line(
    home: Home, play: Play, broker: FakeBroker
) -> None:
    told = {"token": "laptop.x", "role": "machine", "cluster": "c", "name": "laptop"}
    broker.answers["POST /join"] = told
    invitation = Invitation(broker.address, broker.pin, "code")
    with Client.invited(home, invitation) as client:
        assert client.join("code", "laptop", "w1", "i1") == told
    body = {"code": "code", "name": "laptop", "worker": "w1", "instance": "i1"}
    assert broker.asked == [("POST /join", body)]
    assert broker.tokens == [None]
    wrong = invitation._replace(pin=play().pin)
    with Client.invited(home, wrong) as client, pytest.raises(Untrusted):
        client.join("code", "laptop", "w1", "i1")
    assert len(broker.asked) == 1


def test_a_connection_notices_a_machine_that_is_gone(
    home: Home, broker: FakeBroker
) -> None:
    broker.joined_by(home)
    connection = open_broker([broker.address], Credentials.load(home), lambda: None)
    channel = connection._channel
    assert channel.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert channel.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 30
    assert channel.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 60_000
    connection.close()


@pytest.mark.parametrize("dead_end", ["full", "refuses"])
def test_of_the_places_of_a_name_the_one_that_answers_is_taken(
    home: Home, broker: FakeBroker, monkeypatch: pytest.MonkeyPatch, dead_end: str
) -> None:
    broker.joined_by(home)
    with socket.socket() as full, socket.socket() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        place = full.getsockname() if dead_end == "full" else tuple(closed_port())
        waiting.connect(full.getsockname())  # The next one gets no answer at all.
        found = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", place),
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", tuple(broker.address)),
        ]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        began = time.monotonic()
        with Client(home, broker="two.places") as client:
            assert client.job(7) == JOB
        assert time.monotonic() - began < tls_connection.CONNECT_S / 2


def test_a_place_without_any_answer_is_given_up(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls_connection, "CONNECT_S", 0.2)
    with socket.socket() as full, socket.socket() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        waiting.connect(full.getsockname())
        place = Address(*full.getsockname())
        with (
            Client(home, broker=str(place)) as client,
            pytest.raises(NoBroker, match=r"no answer within 0\.2 s"),
        ):
            client.job(7)


def test_only_a_client_of_another_machine_imports_ssl(
    home: Home, broker: FakeBroker
) -> None:
    script = (
        "import sys; from grass.client.client import Client; from grass.config import *"
        "\nClient(Home(sys.argv[1])); print('ssl' in sys.modules)"
    )
    words = [sys.executable, "-S", "-c", script, home.folder]
    environment = {**os.environ, "PYTHONPATH": "src"}

    def told() -> str:
        return subprocess.run(
            words, env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert told() == "False"
    broker.joined_by(home)
    assert told() == "True"


def test_where_one_broker_knows_no_leader_the_others_are_asked(
    home: Home, play: Play
) -> None:
    """It may be cut off from the database, and so know of no leader for long."""
    cut_off = play()
    leader = play(like=cut_off)
    cut_off.joined_by(home)
    places = [cut_off.address, leader.address]
    Credentials.load(home).set_addresses(cut_off.pin, places)
    cut_off.answers["GET /jobs/7"] = problem("lead-lost", "no broker leads at present")
    leader.answers["GET /jobs/7"] = {"id": 7}
    with Client(home) as client:
        assert client.job(7)["id"] == 7
    assert len(cut_off.asked) == 1


def test_an_address_that_works_is_kept_though_no_broker_tells_of_it(
    home: Home, broker: FakeBroker
) -> None:
    broker.joined_by(home)
    broker.answers["GET /jobs/7"] = {"id": 7}
    with Client(home) as client:
        client.job(7)
        assert client._connection is not None
        tls_connection.note_brokers(home, client._connection, "a:1,b:2")
    told = [Address("a", 1), Address("b", 2)]
    known = Credentials.load(home).current()
    assert known is not None
    assert list(known.addresses) == [broker.address, *told]
