"""Those who call on a broker's own machine, whichever broker leads."""

import pytest

from tests.support.brokers import await_lead, told
from tests.support.homes import GrassHome
from tests.support.machines import LOOPBACK, Machine, new_line
from tests.support.patience import until

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(180)]


@pytest.fixture
def pair(machine: Machine, database: str) -> tuple[GrassHome, GrassHome]:
    """A leader and a standby, each with a worker of its own."""
    first, second = machine("first"), machine("second")
    first.ok("start", *LOOPBACK, "--name", "one", "--store", database)
    line = new_line(first, "--role", "broker")
    second.ok("join", "--standby", *LOOPBACK, "--name", "two", line)
    until(lambda: len(told(first)["brokers"]), "both are known", lambda n: n == 2)
    return first, second


def enqueued(home: GrassHome, key: str) -> int:
    """Enqueue a job as a client does that repeats a call with its key."""
    body = {"jobs": [{"command": "true"}], "key": key}
    return int(home.client.idempotent("POST", "/jobs", body)["first"])


def test_a_repeated_enqueue_is_known_at_the_next_leader(
    pair: tuple[GrassHome, GrassHome],
) -> None:
    first, second = pair
    over_tcp = enqueued(second, "a")
    first.kill_daemon()
    await_lead(second, "two")
    assert enqueued(second, "a") == over_tcp
    local = enqueued(second, "b")
    first.ok("start")
    over_tcp = enqueued(first, "c")
    second.ok("stop")
    await_lead(first, "one")
    second.ok("start")
    assert enqueued(second, "b") == local
    assert enqueued(first, "c") == over_tcp


def test_an_environment_does_not_travel_from_a_standby_to_the_leader(
    pair: tuple[GrassHome, GrassHome],
) -> None:
    _, second = pair
    second.environment["SECRET"] = "mine"
    job = second.enqueue("--worker", "one", "--", "sh", "-c", "echo $SECRET; pwd")
    second.ok("wait", str(job))
    # The directory is the caller's, as a name.
    assert second.logs(job).splitlines() == ["", str(second.desk)]
