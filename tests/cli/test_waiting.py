"""`grass wait` and those that follow, while the daemon is frozen or away."""

import os
import signal
import time
from collections.abc import Callable

import pytest

from grass.client.patience import LIMIT_S
from tests.support.fixtures import cold, home, machine
from tests.support.homes import GrassHome
from tests.support.machines import LOOPBACK, Machine, new_line, place_of
from tests.support.processes import await_stopped

__all__ = ["cold", "home", "machine"]

pytestmark = pytest.mark.daemon


def frozen(daemon: GrassHome, call: Callable[[], object]) -> None:
    """Do something while a daemon does nothing."""
    pid = daemon.daemon_pid()
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        await_stopped(pid)
        call()
    finally:
        os.kill(pid, signal.SIGCONT)


def timed_out(caller: GrassHome, who: str) -> None:
    began = time.monotonic()
    ran = caller.run("wait", "--timeout", "2s", "1")
    assert time.monotonic() - began < LIMIT_S
    assert ran.returncode == 7, ran.stderr
    assert f"the time is up, and {who}" in ran.stderr


def test_a_time_limit_is_kept_while_the_daemon_is_frozen(home: GrassHome) -> None:
    home.enqueue("--", "sleep", "1000")
    frozen(home, lambda: timed_out(home, "the daemon has not answered"))


def test_a_time_limit_is_kept_while_the_broker_is_frozen(machine: Machine) -> None:
    broker, laptop = machine("broker"), machine("laptop")
    broker.ok("start", *LOOPBACK)
    broker.enqueue("--", "sleep", "1000")
    laptop.ok("join", "--no-start", "--name", "laptop", new_line(broker))
    frozen(broker, lambda: timed_out(laptop, "the broker at 127.0.0.1:"))


def test_the_broker_is_said_to_be_away_once_and_followed_on(machine: Machine) -> None:
    broker, laptop = machine("broker"), machine("laptop")
    broker.ok("start", *LOOPBACK)
    broker.enqueue("echo up; sleep 1000")
    line = new_line(broker)
    place = place_of(line)
    laptop.ok("join", "--no-start", "--name", "laptop", line)
    logs = laptop.popen("logs", "-f", "1")
    assert logs.stdout is not None
    assert logs.stdout.readline() == "up\n"
    away = f"grass: the broker at {place} cannot be reached; going on if it is back"
    broker.kill_daemon()
    assert logs.stderr is not None
    assert logs.stderr.readline().startswith(away)
    broker.ok("start", "--bind", place)
    broker.ok("cancel", "1")
    assert logs.communicate(timeout=30) == ("", "grass: job 1 was cancelled\n")
    assert logs.returncode == 0
