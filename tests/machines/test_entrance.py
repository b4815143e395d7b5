"""How a broker tells others of itself: real daemons on loopback."""

import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.homes import GrassHome
from tests.support.screen import Screen

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]

LOOPBACK = ("--bind", "127.0.0.1:0", "--advertise", "127.0.0.1")
LINE = re.compile(r"^grass join (\S+)/[\w-]{43}/[\w-]{22}$", re.MULTILINE)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[GrassHome]:
    """A home that will host a broker."""
    home = GrassHome(tmp_path)
    yield home
    home.end()


@pytest.fixture
def port() -> int:
    """A port that is free on the loopback of IPv6."""
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
        number: int = listener.getsockname()[1]
    return number


@pytest.mark.parametrize("more", [(), ("--advertise", "::1"), ("--advertise=[::1]",)])
def test_a_number_with_colons_is_told_with_the_port_that_is_bound(
    broker: GrassHome, port: int, more: tuple[str, ...]
) -> None:
    told = broker.ok("start", "--bind", f"[::1]:{port}", "--no-worker", *more)
    found = LINE.search(told)
    assert found is not None
    assert found[1] == f"[::1]:{port}"


def test_a_restart_that_nobody_could_be_told_of_costs_nothing(
    broker: GrassHome,
) -> None:
    broker.ok("start", "--bind", "127.0.0.1:0")
    before = broker.daemon_pid()
    ran = broker.run("restart", "--advertise", "not an address")
    assert ran.returncode == 2
    assert "'not an address' is not an address" in ran.stderr
    assert broker.daemon_pid() == before


def test_a_daemon_that_prints_into_a_file_keeps_no_code_there(
    broker: GrassHome, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    with kept.open("w") as file:
        daemon = subprocess.Popen(
            [*broker.grass, "daemon", *LOOPBACK],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            env=broker.environment,
        )
    assert daemon.stderr is not None
    told = daemon.stderr.readline() + daemon.stderr.readline()
    assert "`grass token new` prints the line" in told
    assert "ready" in told
    daemon.terminate()
    daemon.communicate(timeout=30)
    assert kept.read_text() == ""


def test_a_daemon_on_a_terminal_shows_the_line(broker: GrassHome) -> None:
    words = [*broker.grass, "daemon", *LOOPBACK]
    screen = Screen(words, broker.environment)
    screen.until("grass join 127.0.0.1:")
    screen.until("ready: ")
    assert screen.interrupt() == 0
