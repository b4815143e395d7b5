"""A machine that cannot start jobs: they wait or go elsewhere, and people are told."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.homes import GrassHome
from tests.support.machines import Machine, join, new_line, worker_of
from tests.support.patience import until
from tests.support.shortage import ForkLimit, fill, forks, make_room, small_disk

__all__ = ["forks"]

pytestmark = [pytest.mark.daemon, pytest.mark.timeout(120)]

NO_PROCESS = "no more processes are allowed"
FULL = "no space left on device"
SLOTS = ("--capacity", "{slot:2}", "--default-require", "{slot:1}")


@pytest.fixture
def crowded(home: GrassHome, forks: ForkLimit) -> Iterator[GrassHome]:
    """A home whose keeper cannot fork until it is allowed to."""
    pid = home.keeper_pid()
    assert pid is not None
    forks.deny(pid)
    yield home
    forks.allow()


def await_unable(broker: GrassHome, name: str, reason: str) -> None:
    until(
        lambda: (worker_of(broker, name) or {}).get("unable"),
        f"{name} does not say that it cannot start jobs",
        lambda said: said == reason,
    )


def test_jobs_wait_with_the_reason_while_no_process_can_be_made(
    crowded: GrassHome, forks: ForkLimit
) -> None:
    ids = crowded.enqueue_array("--array", "1-20", "--", "true")
    [name] = [one["name"] for one in crowded.client.workers()["workers"]]
    await_unable(crowded, name, NO_PROCESS)
    until(lambda: set(crowded.states(ids)), "", lambda states: states == {"queued"})
    why = f"worker `{name}`, which could run it, cannot start jobs: {NO_PROCESS}"
    assert crowded.reason(ids[0]) == why
    assert crowded.ok("explain", str(ids[0])).startswith(
        f"job {ids[0]} is queued: {why}\n"
    )
    shown = crowded.ok("workers")
    assert re.search(rf"^{name} +cannot start jobs: {NO_PROCESS} ", shown, re.MULTILINE)
    assert f"{name} (cannot start jobs: {NO_PROCESS})" in crowded.ok("show")
    # It costs the journal a line, however long it lasts and whatever is enqueued.
    crowded.enqueue_array("--array", "1-20", "--", "true")
    said = crowded.rows("SELECT count(*) FROM events WHERE kind = 'worker-unable'")
    assert said == [(1,)]
    forks.allow()
    crowded.client.wait(["all"], 60.0)
    assert set(crowded.states(ids)) == {"succeeded"}


def test_a_daemon_that_can_start_no_process_serves_and_tells_it(
    home: GrassHome, forks: ForkLimit
) -> None:
    """No keeper can be started, and no thread for output and reading either."""
    ended = home.enqueue("--", "echo", "hi")
    home.wait(ended)
    home.restart()
    pid = home.daemon_pid()
    assert pid is not None
    forks.deny(pid)
    home.kill_keeper()
    assert home.ok("logs", str(ended)) == "hi\n"
    id = home.enqueue("--", "true")
    [name] = [one["name"] for one in home.client.workers()["workers"]]
    await_unable(home, name, f"no keeper: {NO_PROCESS}")
    until(lambda: home.state(id), "", lambda state: state == "queued")
    assert home.ok("rerun", str(ended)) == f"{ended}\n"
    forks.allow()
    assert home.wait(id, ended)["state"] == "succeeded"
    assert home.daemon_pid() == pid


def test_a_worker_that_cannot_fork_gives_its_jobs_to_others(
    broker: GrassHome, machine: Machine, forks: ForkLimit
) -> None:
    rack = join(broker, machine("rack"), "rack")
    for home in (broker, rack):
        home.ok("create-queue", "train", *SLOTS)
    pid = rack.keeper_pid()
    assert pid is not None
    forks.deny(pid)
    ids = broker.enqueue_array("train", "--array", "1-12", "--", "true")
    broker.client.wait([str(id) for id in ids], 60.0)
    jobs = [broker.client.job(id) for id in ids]
    assert {(job["state"], job["worker"]) for job in jobs} == {("succeeded", "desk")}
    pinned = broker.enqueue("train", "--worker", "rack", "--", "true")
    told = json.loads(broker.ok("explain", "--json", str(pinned)))
    reasons = {one["worker"]: one["reason"] for one in told["workers"]}
    assert reasons == {"desk": "pinned", "rack": "unable"}
    forks.allow()
    assert broker.wait(pinned)["state"] == "succeeded"


def test_what_never_began_on_a_full_disk_is_not_lost_when_all_is_killed_there(
    broker: GrassHome, machine: Machine, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "disk", 16 << 20) as disk:
        rack = machine("rack")
        rack.folder = disk / "home"
        rack.environment["GRASS_HOME"] = str(rack.folder)
        rack.ok("join", "--name", "rack", new_line(broker))
        until(lambda: worker_of(broker, "rack"), "rack does not come")
        fill(disk)
        pinned = ("--worker", "rack", "--output", "/dev/null", "--array", "1-14")
        ids = broker.enqueue_array(*pinned, "--", "true")
        for id in ids[:2]:
            broker.await_event("started", id)
        for _ in range(2):
            rack.kill_daemon()
            rack.ok("start")
            rack.kill_keeper()
        await_unable(broker, "rack", FULL)
        make_room(disk)
        broker.client.wait([str(id) for id in ids], 60.0)
        assert set(broker.states(ids)) == {"succeeded"}
        rack.end()
