"""A machine that is called otherwise, joins again, leaves or stops, as users do it."""

import json
import socket

import pytest

from tests.support.homes import GrassHome
from tests.support.machines import Machine, join, new_line

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]


@pytest.mark.parametrize("option", ["--name", "--advertise"])
def test_what_nobody_could_type_is_refused_before_anything_happens(
    broker: GrassHome, option: str
) -> None:
    pid = broker.daemon_pid()
    refused = broker.run("restart", option, "gpu box")
    assert refused.returncode == 2
    assert "gpu box" in refused.stderr
    assert broker.daemon_pid() == pid
    assert "gpu box" not in (broker.folder / "daemon-options.json").read_text()


def test_the_line_to_join_with_leads_to_the_host_whatever_the_worker_is_called(
    machine: Machine,
) -> None:
    home = machine("broker")
    said = home.ok("start", "--bind", "0.0.0.0:0", "--name", "somebody")
    assert f"grass join {socket.gethostname()}:" in said


def test_who_joins_again_without_a_restart_stays_connected(
    broker: GrassHome, machine: Machine
) -> None:
    rack = join(broker, machine("rack"), "rack")
    after = broker.client.overview()["daemon"]["last_event"]
    rack.ok("join", "--no-start", new_line(broker))
    # The first use of the new token is what ends the old one.
    rack.ok("workers")
    with broker.client.beside() as watcher:
        events = watcher.follow_events(after=after, kind="worker-connected")
        assert next(events)["data"]["name"] == "rack"
    id = broker.enqueue("--worker", "rack", "--", "true")
    assert broker.wait(id)["state"] == "succeeded"


def test_a_worker_has_one_name_whatever_it_was_called_before(
    broker: GrassHome, machine: Machine
) -> None:
    rack = machine("rack")
    rack.ok("start", "--name", "tower")
    assert " as tower (" in rack.ok("join", new_line(broker))
    other = machine("other")
    other.ok("start", "--name", "tower")
    assert " as tower-2 (" in other.ok("join", new_line(broker))
    other.ok("restart")
    for name in ("tower", "tower-2"):
        id = broker.enqueue("--worker", name, "--", "true")
        assert broker.wait(id)["state"] == "succeeded"


def test_stopping_a_worker_with_its_jobs_needs_no_jobs(
    broker: GrassHome, machine: Machine
) -> None:
    rack = join(broker, machine("rack"), "rack")
    assert rack.ok("stop", "--jobs") == "grass is stopped\n"


def test_who_left_is_told_what_makes_the_machine_its_own_again(
    broker: GrassHome, machine: Machine
) -> None:
    rack = join(broker, machine("rack"), "rack")
    rack.ok("leave")
    refused = rack.run("enqueue", "--", "true")
    assert refused.returncode == 5
    assert "`grass restart` gives it a queue of its own" in refused.stderr
    rack.ok("restart")
    assert rack.wait(rack.enqueue("--", "true"))["state"] == "succeeded"


def test_cancelling_what_has_ended_changes_nothing(broker: GrassHome) -> None:
    id = broker.enqueue("--", "true")
    broker.wait(id)
    told = json.loads(broker.ok("cancel", "--json", str(id)))
    assert (told["jobs"], told["changed"]) == ([], False)
