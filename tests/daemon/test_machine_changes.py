"""A machine that is called otherwise, joins again, leaves or stops, as users do it."""

import json
import socket

import pytest

from tests.support.homes import GrassHome
from tests.support.machines import Machine, join, new_line

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]


@pytest.mark.parametrize("option", ["--name", "--advertise"])
def test_what_nobody_could_type_is_refused_before_anything_happens(
    hub: GrassHome, option: str
) -> None:
    pid = hub.daemon_pid()
    refused = hub.run("restart", option, "gpu box")
    assert refused.returncode == 2
    assert "gpu box" in refused.stderr
    assert hub.daemon_pid() == pid
    assert "gpu box" not in (hub.folder / "daemon-options.json").read_text()


def test_the_line_to_join_with_leads_to_the_host_whatever_the_worker_is_called(
    machine: Machine,
) -> None:
    home = machine("broker")
    said = home.ok("start", "--bind", "0.0.0.0:0", "--name", "somebody")
    assert f"grass join {socket.gethostname()}:" in said


def test_who_joins_again_without_a_restart_stays_connected(
    hub: GrassHome, machine: Machine
) -> None:
    rack = join(hub, machine("rack"), "rack")
    after = hub.client.overview()["daemon"]["last_event"]
    rack.ok("join", "--no-start", new_line(hub))
    # The first use of the new token is what ends the old one.
    rack.ok("workers")
    with hub.client.beside() as watcher:
        events = watcher.follow_events(after=after, kind="worker-connected")
        assert next(events)["data"]["name"] == "rack"
    id = hub.enqueue("--worker", "rack", "--", "true")
    assert hub.wait(id)["state"] == "succeeded"


def test_a_worker_has_one_name_whatever_it_was_called_before(
    hub: GrassHome, machine: Machine
) -> None:
    rack = machine("rack")
    rack.ok("start", "--name", "tower")
    assert " as tower (" in rack.ok("join", new_line(hub))
    other = machine("other")
    other.ok("start", "--name", "tower")
    assert " as tower-2 (" in other.ok("join", new_line(hub))
    other.ok("restart")
    for name in ("tower", "tower-2"):
        id = hub.enqueue("--worker", name, "--", "true")
        assert hub.wait(id)["state"] == "succeeded"


def test_stopping_a_worker_with_its_jobs_needs_no_jobs(
    hub: GrassHome, machine: Machine
) -> None:
    rack = join(hub, machine("rack"), "rack")
    assert rack.ok("stop", "--jobs") == "grass is stopped\n"


def test_who_left_is_told_what_makes_the_machine_its_own_again(
    hub: GrassHome, machine: Machine
) -> None:
    rack = join(hub, machine("rack"), "rack")
    rack.ok("leave")
    refused = rack.run("enqueue", "--", "true")
    assert refused.returncode == 5
    assert "`grass restart` gives it a queue of its own" in refused.stderr
    rack.ok("restart")
    assert rack.wait(rack.enqueue("--", "true"))["state"] == "succeeded"


def test_cancelling_what_has_ended_changes_nothing(hub: GrassHome) -> None:
    id = hub.enqueue("--", "true")
    hub.wait(id)
    told = json.loads(hub.ok("cancel", "--json", str(id)))
    assert (told["jobs"], told["changed"]) == ([], False)
