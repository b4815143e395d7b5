"""A real daemon, and what joining a broker makes of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from grass.model.addresses import Invitation
from tests.support.fixtures import cold, home
from tests.support.homes import GrassHome

from .fake_broker import FakeBroker

__all__ = ["cold", "home"]

pytestmark = pytest.mark.daemon

ENROLLED = {"token": "desk.t0ken", "role": "machine", "cluster": "c1", "name": "desk"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[FakeBroker]:
    playing = FakeBroker(tmp_path / "broker")
    playing.answers["POST /join"] = ENROLLED
    yield playing
    playing.close()


@pytest.fixture
def line(broker: FakeBroker) -> str:
    return str(Invitation(broker.address, broker.pin, "c0de"))


def test_a_stopped_daemon_is_asked_for_unfinished_jobs_too(
    home: GrassHome, line: str
) -> None:
    home.run("enqueue", "--hold", "--", "true")
    home.run("stop")
    for _ in range(2):
        joined = home.run("join", line)
        assert joined.returncode == 0
        assert "this machine has 1 unfinished job of its own" in joined.stderr
        assert (home.folder / "stopped").exists()
    assert home.run("show", "--broker", "local").returncode == 3
    home.run("leave")
    home.run("start")
    assert home.run("show", "--quiet").stdout == "1\n"


def test_joining_again_leaves_a_daemon_with_jobs_of_its_own_alone(
    home: GrassHome, line: str
) -> None:
    home.run("enqueue", "--hold", "--", "true")
    for _ in range(2):
        joined = home.run("join", line)
        assert joined.returncode == 0
        assert "works for it" not in joined.stdout
        assert "this machine has 1 unfinished job of its own" in joined.stderr
    assert home.run("show", "--broker", "local", "--quiet").stdout == "1\n"
    assert home.run("cancel", "--broker", "local", "1").returncode == 0
    assert "works for it now" in home.run("join", line).stdout


def test_a_daemon_that_is_to_run_no_jobs_stays_a_broker(
    home: GrassHome, line: str
) -> None:
    home.run("restart", "--no-worker")
    home.run("join", "--no-start", line)
    joined = home.run("join", line)
    assert "works for it" not in joined.stdout
    assert "`grass restart --no-broker` makes it a worker" in joined.stderr
    home.run("leave")


def test_an_idle_daemon_becomes_a_worker_and_a_broker_again(
    home: GrassHome, line: str, broker: FakeBroker
) -> None:
    home.run("enqueue", "--", "true")
    home.run("wait", "1")
    joined = home.run("join", line)
    assert joined.returncode == 0, joined.stderr
    assert "this machine works for it now" in joined.stdout
    own = home.run("enqueue", "--broker", "local", "--", "true")
    assert own.returncode == 5
    assert f"works for the broker at {broker.address}" in own.stderr
    left = home.run("leave")
    assert "works for it until `grass restart`" in left.stdout
    home.run("restart")
    assert home.run("show", "--all", "--quiet").stdout == "1\n"
