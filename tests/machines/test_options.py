"""The options of daemons that follow one another: merged, checked ahead, forgotten."""

import json
import os
import signal
import socket
from collections.abc import Iterator

import pytest

from tests.support.homes import GrassHome
from tests.support.machines import LOOPBACK, Machine, invitation, place_of, tcp_endpoint
from tests.support.patience import until
from tests.support.processes import process_state, until_ready
from tests.support.screen import Screen
from tests.tls.certificates import PASSPHRASE, certificate, keystore

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]

RUNS_ON = "the daemon runs on as before"
PROMPT = "Pass phrase"


class Typed(Screen):
    """A terminal on which a person answers."""

    def type(self, text: str) -> None:
        os.write(self._end, text.encode())


def remembered(home: GrassHome) -> list[str]:
    words: list[str] = json.loads((home.folder / "daemon-options.json").read_text())
    return words


@pytest.fixture
def broker(machine: Machine) -> GrassHome:
    return machine("broker")


@pytest.fixture
def taken() -> Iterator[int]:
    """A port at which somebody else listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_an_option_that_is_given_leaves_the_others_as_they_were(
    broker: GrassHome,
) -> None:
    broker.ok("start", *LOOPBACK, "--no-worker", "--label", "slow", "--label", "old")
    line = broker.ok("restart", "--label", "fast")
    assert invitation(line)
    assert remembered(broker) == [
        *("--bind=127.0.0.1:0", "--advertise=127.0.0.1", "--no-worker"),
        "--label=fast",
    ]
    broker.ok("stop")
    broker.ok("start", "--advertise", "localhost")
    assert "--no-worker" in remembered(broker)
    assert "localhost" in str(tcp_endpoint(broker))


def test_jobs_that_are_ended_without_a_daemon_cost_no_options(
    broker: GrassHome,
) -> None:
    broker.ok("start", *LOOPBACK)
    broker.kill_daemon()
    broker.ok("stop", "--jobs")
    broker.ok("start")
    assert tcp_endpoint(broker) is not None


def test_another_way_to_host_replaces_the_one_before_and_says_so(
    broker: GrassHome, machine: Machine
) -> None:
    other = machine("other")
    line = invitation(broker.ok("start", *LOOPBACK))
    other.ok("start", *LOOPBACK, "--label", "kept")
    other.ok("join", "--no-start", line)
    place = place_of(line)
    told = other.run("restart", "--connect", place)
    assert told.returncode == 0, told.stderr
    assert told.stderr == "grass: --connect replaces --bind, --advertise\n"
    assert remembered(other) == [f"--connect={place}", "--label=kept"]
    assert tcp_endpoint(other) is None
    told = other.run("restart", *LOOPBACK)
    assert told.stderr.startswith("grass: --bind replaces --connect\n")
    assert tcp_endpoint(other) is not None
    other.ok("restart", "--fresh", "--label", "alone")
    assert remembered(other) == ["--label=alone"]


def test_a_restart_that_the_certificate_forbids_costs_nothing(
    broker: GrassHome,
) -> None:
    store = keystore(broker.desk, *certificate(broker.desk)).name
    broker.ok("start", *LOOPBACK)
    before = broker.daemon_pid()
    (broker.desk / "wrong").write_text("loud\n")
    for words, why in (
        (["--cert", store], "needs its pass phrase"),
        (["--cert", store, "--cert-pass-file", "wrong"], "does not open"),
        (["--cert", store, "--cert-pass-file", "none"], "No such file"),
        (["--cert", "cert.pem"], "is not a PKCS#12 file"),
    ):
        ran = broker.run("restart", *words)
        assert ran.returncode == 1
        assert why in ran.stderr
        assert RUNS_ON in ran.stderr
        assert broker.daemon_pid() == before
    broker.ok("restart", "--cert", store, env={"GRASS_CERT_PASS": PASSPHRASE})


def test_a_restart_that_the_address_forbids_costs_nothing(
    broker: GrassHome, taken: int
) -> None:
    broker.ok("start", *LOOPBACK)
    before = broker.daemon_pid()
    for place, why in (
        ("192.0.2.1:7500", "Cannot assign requested address"),
        ("no-such-host.invalid:7500", "cannot listen on no-such-host.invalid:7500"),
        (f"127.0.0.1:{taken}", f"such as 127.0.0.1:{taken + 1}"),
    ):
        ran = broker.run("restart", "--bind", place)
        assert ran.returncode == 5
        assert why in ran.stderr
        assert RUNS_ON in ran.stderr
        assert broker.daemon_pid() == before


def test_a_daemon_may_have_the_port_of_the_one_before(broker: GrassHome) -> None:
    # Somebody else may listen on a port that was free just now.
    port = until(lambda: started_on_free_port(broker), "no port is free")
    broker.ok("restart", "--bind", f"0.0.0.0:{port}", "--advertise", "127.0.0.1")
    assert str(port) in str(tcp_endpoint(broker))


def test_a_daemon_may_keep_the_port_that_the_one_before_has_chosen(
    broker: GrassHome,
) -> None:
    broker.ok("start", *LOOPBACK)
    endpoint = tcp_endpoint(broker)
    assert isinstance(endpoint, dict)
    broker.ok("restart", "--bind", endpoint["address"])
    assert tcp_endpoint(broker) == endpoint


def started_on_free_port(broker: GrassHome) -> int | None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = int(listener.getsockname()[1])
    ran = broker.run("start", "--bind", f"127.0.0.1:{port}")
    return port if ran.returncode == 0 else None


def test_a_broker_on_the_loopback_says_that_nobody_else_reaches_it(
    broker: GrassHome,
) -> None:
    ran = broker.run("start", "--bind", "127.0.0.1:0")
    assert invitation(ran.stdout)
    assert "only this machine can reach 127.0.0.1:" in ran.stderr
    assert broker.run("restart", "--advertise", "127.0.0.1").stderr == ""
    broker.ok("stop")
    daemon = broker.popen("daemon", "--bind", "127.0.0.1:0")
    assert "only this machine can reach" in until_ready(daemon)
    daemon.terminate()
    assert invitation(daemon.communicate(timeout=30)[0])


def test_a_port_without_a_host_is_a_usage_error(broker: GrassHome) -> None:
    ran = broker.run("start", "--bind", "7500")
    assert ran.returncode == 2
    assert "HOST:PORT" in ran.stderr


def test_who_leaves_forgets_what_was_for_that_broker(
    broker: GrassHome, machine: Machine
) -> None:
    other = machine("other")
    other.ok("join", invitation(broker.ok("start", *LOOPBACK)))
    other.ok("restart", "--on-disconnect", "stop", "--lease", "30s", "--label", "big")
    assert "until `grass restart`" in other.ok("leave")
    other.ok("restart")
    assert remembered(other) == ["--label=big"]


def test_who_leaves_another_broker_keeps_working(
    broker: GrassHome, machine: Machine
) -> None:
    second, other = machine("second"), machine("other")
    line = invitation(broker.ok("start", *LOOPBACK))
    second.ok("start", *LOOPBACK)
    place = place_of(line)
    other.ok("join", line)
    other.ok("join", "--no-start", invitation(second.ok("token", "new")))
    other.ok("restart", "--connect", place, "--on-disconnect", "stop")
    assert "works for it" not in other.ok("leave")
    assert f"--connect={place}" in remembered(other)
    assert "--on-disconnect=stop" in remembered(other)


@pytest.fixture
def prompt(broker: GrassHome) -> Typed:
    """A daemon that asks for a pass phrase on a terminal."""
    store = str(keystore(broker.desk, *certificate(broker.desk)))
    words = ("daemon", *LOOPBACK, "--cert", store)
    screen = Typed([*broker.grass, *words], broker.environment)
    screen.until(PROMPT)
    return screen


def test_ctrl_c_leaves_the_prompt_with_nothing_started(
    prompt: Typed, broker: GrassHome
) -> None:
    assert prompt.interrupt() == 130
    assert broker.daemon_pid() is None
    assert not (broker.folder / "grass.db").exists()


def test_sigterm_ends_a_daemon_that_asks(prompt: Typed, broker: GrassHome) -> None:
    pid = prompt.process.pid
    # Python notices a signal between two steps of its own, or when a call that waits is
    # interrupted: right before that call it would be noticed with the next key.
    until(lambda: process_state(pid), "it does not wait for keys", "S".__eq__)
    os.kill(pid, signal.SIGTERM)
    assert prompt.ended() == 128 + signal.SIGTERM
    assert broker.daemon_pid() is None


def test_the_pass_phrase_opens_and_then_ctrl_c_stops(
    prompt: Typed, broker: GrassHome
) -> None:
    prompt.type(f"{PASSPHRASE}\n")
    prompt.until("ready")
    id = broker.enqueue("--", "env")
    broker.wait(id)
    assert PASSPHRASE not in broker.logs(id)
    assert prompt.interrupt() == 0


def test_no_pass_phrase_at_all_is_one_line(prompt: Typed) -> None:
    prompt.type("\x04")
    assert prompt.ended() == 1
    assert "needs its pass phrase" in prompt.seen
    assert "Traceback" not in prompt.seen
