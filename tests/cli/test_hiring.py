"""A real daemon, and what joining a broker makes of it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from grass.model.addresses import Invitation

from .conftest import Grass
from .far_broker import FarBroker

pytestmark = pytest.mark.daemon

ENROLLED = {"token": "desk.t0ken", "role": "machine", "cluster": "c1", "name": "desk"}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[FarBroker]:
    playing = FarBroker(tmp_path / "broker")
    playing.answers["POST /join"] = ENROLLED
    yield playing
    playing.close()


@pytest.fixture
def line(broker: FarBroker) -> str:
    return str(Invitation(broker.address, broker.pin, "c0de"))


def test_a_stopped_daemon_is_asked_for_unfinished_jobs_too(
    running: Grass, line: str, surroundings: dict[str, str]
) -> None:
    running("enqueue", "--hold", "--", "true")
    running("stop")
    for _ in range(2):
        joined = running("join", line)
        assert joined.returncode == 0
        assert "this machine has 1 unfinished job of its own" in joined.stderr
        assert (Path(surroundings["GRASS_HOME"]) / "stopped").exists()
    assert running("show", "--broker", "local").returncode == 3
    running("leave")
    running("start")
    assert running("show", "--quiet").stdout == "1\n"


def test_joining_again_leaves_a_daemon_with_jobs_of_its_own_alone(
    running: Grass, line: str
) -> None:
    running("enqueue", "--hold", "--", "true")
    for _ in range(2):
        joined = running("join", line)
        assert joined.returncode == 0
        assert "works for it" not in joined.stdout
        assert "this machine has 1 unfinished job of its own" in joined.stderr
    assert running("show", "--broker", "local", "--quiet").stdout == "1\n"
    assert running("cancel", "--broker", "local", "1").returncode == 0
    assert "works for it now" in running("join", line).stdout


def test_a_daemon_that_is_to_run_no_jobs_stays_a_broker(
    running: Grass, line: str, surroundings: dict[str, str]
) -> None:
    running("restart", "--no-worker")
    running("join", "--no-start", line)
    joined = running("join", line)
    assert "works for it" not in joined.stdout
    assert "`grass restart --no-broker` makes it a worker" in joined.stderr
    running("leave")


def test_an_idle_daemon_becomes_a_worker_and_a_broker_again(
    running: Grass, line: str, broker: FarBroker
) -> None:
    running("enqueue", "--", "true")
    running("wait", "1")
    joined = running("join", line)
    assert joined.returncode == 0, joined.stderr
    assert "this machine works for it now" in joined.stdout
    own = running("enqueue", "--broker", "local", "--", "true")
    assert own.returncode == 5
    assert f"works for the broker at {broker.address}" in own.stderr
    left = running("leave")
    assert "works for it until `grass restart`" in left.stdout
    running("restart")
    assert running("show", "--all", "--quiet").stdout == "1\n"
