"""How a broker tells others of itself: real daemons on loopback."""

import socket
import subprocess
from pathlib import Path

import pytest

from tests.support.homes import GrassHome
from tests.support.machines import LOOPBACK, invitation, place_of
from tests.support.processes import until_ready
from tests.support.screen import Screen

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]


@pytest.fixture
def port() -> int:
    """A port that is free on the loopback of IPv6."""
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
        number: int = listener.getsockname()[1]
    return number


@pytest.mark.parametrize("more", [(), ("--advertise", "::1"), ("--advertise=[::1]",)])
def test_a_number_with_colons_is_told_with_the_port_that_is_bound(
    cold: GrassHome, port: int, more: tuple[str, ...]
) -> None:
    told = cold.ok("start", "--bind", f"[::1]:{port}", "--no-worker", *more)
    assert place_of(invitation(told)) == f"[::1]:{port}"


def test_a_restart_that_nobody_could_be_told_of_costs_nothing(
    cold: GrassHome,
) -> None:
    cold.ok("start", "--bind", "127.0.0.1:0")
    before = cold.daemon_pid()
    ran = cold.run("restart", "--advertise", "not an address")
    assert ran.returncode == 2
    assert "'not an address' is not an address" in ran.stderr
    assert cold.daemon_pid() == before


def test_a_daemon_that_prints_into_a_file_keeps_no_code_there(
    cold: GrassHome, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    with kept.open("w") as file:
        daemon = subprocess.Popen(
            [*cold.grass, "daemon", *LOOPBACK],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.PIPE,
            text=True,
            env=cold.environment,
        )
    assert "`grass token new` prints the line" in until_ready(daemon)
    daemon.terminate()
    daemon.communicate(timeout=30)
    assert kept.read_text() == ""


def test_a_daemon_on_a_terminal_shows_the_line(cold: GrassHome) -> None:
    words = [*cold.grass, "daemon", *LOOPBACK]
    screen = Screen(words, cold.environment)
    screen.until("grass join 127.0.0.1:")
    screen.until("daemon.ready ")
    assert screen.interrupt() == 0
