"""The lease: without a word from the daemon, every attempt ends in time."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from typing import Any

import pytest

from grass.keeper.codec import BadMessage, decode_verb
from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.keeper_core import KeeperCore
from grass.keeper.protocol import (
    Entry,
    HelloVerb,
    LeasedEntry,
    LeaseEntry,
    LeaseVerb,
    StopVerb,
)

from .conversation import Daemon, kill_and_await, wait_readable
from .cores import asked, core_with_job, ended, of, spawned, spec

Make = Callable[..., Daemon]
REASON = "cut off from the broker"


def boot_s() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def leased(until: float | None, now: float = 0.0, **fields: Any) -> KeeperCore:
    """Give a core with a job of 15 seconds' grace, and a lease."""
    core = core_with_job(**fields)
    core.step(asked(LeaseVerb("", until)), now)
    return core


def stops(wanted: list[effects.Effect]) -> list[tuple[str, float]]:
    published = [one.entry for one in of(wanted, effects.Publish)]
    return [(one.reason, one.kill_at) for one in published if hasattr(one, "kill_at")]


def test_a_lease_is_on_record_before_it_is_confirmed() -> None:
    core = core_with_job()
    wanted = core.step(asked(LeaseVerb("", 40.0)), 1.0)
    assert wanted == [
        effects.Record(LeaseEntry("", 40.0)),
        effects.Reply(7, LeasedEntry("", 40.0)),
    ]
    [greeting] = of(core.step(asked(HelloVerb()), 1.0), effects.SendHello)
    assert greeting.entry.leases == {"": 40.0}


def test_every_attempt_is_ended_by_its_own_grace_when_the_lease_runs_out() -> None:
    core = leased(40.0)
    core.step(asked(spec("b", grace=2.0)), 1.0)
    core.step(spawned("b", 101), 1.0)
    assert not stops(core.step(events.TimerTick(), 39.9))
    assert core.timers.next_due() == 40.0
    wanted = core.step(events.TimerTick(), 40.0)
    assert stops(wanted) == [(REASON, 55.0), (REASON, 42.0)]
    signalled = of(wanted, effects.SignalProcesses)
    assert signalled == [
        effects.SignalProcesses("a", (15, 18)),
        effects.SignalProcesses("b", (15, 18)),
    ]


def test_a_renewed_lease_is_the_one_that_counts() -> None:
    core = leased(40.0)
    core.step(asked(LeaseVerb("", 60.0)), 30.0)
    assert not stops(core.step(events.TimerTick(), 59.0))
    assert stops(core.step(events.TimerTick(), 60.0))


def test_without_a_lease_nothing_ends() -> None:
    core = leased(40.0)
    core.step(asked(LeaseVerb("", None)), 30.0)
    assert ("lease", "") not in core.timers
    assert not stops(core.step(events.TimerTick(), 1e9))


def test_who_slept_through_the_end_has_had_the_grace() -> None:
    core = leased(40.0)
    wanted = core.step(events.TimerTick(), 5000.0)
    assert of(wanted, effects.KillProcesses) == [effects.KillProcesses("a")]


def test_a_stop_with_a_longer_grace_is_hastened() -> None:
    core = leased(40.0)
    core.step(asked(StopVerb("a", 15, 1000.0, "cancelled")), 10.0)
    core.step(events.TimerTick(), 40.0)
    core.step(events.TimerTick(), 40.3)
    assert core.timers.next_due() == 55.0
    core.step(ended(status=15), 41.0)
    [exit] = of(core.step(events.Surveyed("a", True, 0), 41.0), effects.Publish)
    assert exit.entry.reason == "cancelled"


def test_an_end_by_the_lease_says_so() -> None:
    core = leased(40.0)
    core.step(events.TimerTick(), 40.0)
    core.step(ended(status=15), 41.0)
    [exit] = of(core.step(events.Surveyed("a", True, 0), 41.0), effects.Publish)
    assert (exit.entry.reason, exit.entry.signal) == (REASON, 15)


@pytest.mark.parametrize("is_lent", [False, True])
def test_only_a_lent_keeper_leaves_with_an_exit_that_nobody_takes(
    is_lent: bool,
) -> None:
    core = leased(40.0)
    core.is_lent = is_lent
    core.step(events.Closed(7), 10.0)
    core.step(ended(), 20.0)
    wanted = core.step(events.Surveyed("a", True, 0), 20.0)
    # Its daemon may be there again before the lease is over.
    assert not of(wanted, effects.Exit)
    wanted = core.step(events.TimerTick(), 40.0)
    assert bool(of(wanted, effects.Exit)) is is_lent


def test_a_lent_keeper_stays_while_a_daemon_or_a_job_is_there() -> None:
    core = leased(40.0)
    core.is_lent = True
    assert not of(core.step(events.TimerTick(), 40.0), effects.Exit)
    assert not of(core.step(events.Closed(7), 41.0), effects.Exit)
    core.step(ended(status=15), 42.0)
    wanted = core.step(events.Surveyed("a", True, 0), 42.0)
    assert of(wanted, effects.Exit)


def test_a_job_whose_main_process_was_done_keeps_its_code() -> None:
    core = leased(40.0)
    core.step(ended(), 39.0)
    core.step(events.Surveyed("a", False, 0), 39.0)
    core.step(events.TimerTick(), 40.0)
    [exit] = of(core.step(events.Surveyed("a", True, 0), 41.0), effects.Publish)
    assert (exit.entry.code, exit.entry.reason) == (0, None)


def test_nothing_starts_under_a_lease_that_has_run_out() -> None:
    core = leased(40.0)
    # The timer comes late: what arrives first finds the lease over all the same.
    wanted = core.step(asked(spec("b")), 40.5)
    assert not of(wanted, effects.Spawn)
    assert of(wanted, effects.GiveUp) == [effects.GiveUp("b", REASON)]
    [exit] = of(core.step(events.SpawnFailed("b", REASON, 5), 40.5), effects.Publish)
    assert (exit.entry.id, exit.entry.reason) == ("b", REASON)


def test_who_waits_for_another_is_given_up_and_does_not_follow_it() -> None:
    core = leased(40.0)
    core.step(asked(spec("b", after="a")), 1.0)
    core.step(ended(), 40.5)
    wanted = core.step(events.Surveyed("a", True, 0), 40.5)
    assert not of(wanted, effects.Spawn)
    assert core.attempts["b"].state == "starting"


def test_a_lease_that_is_renewed_lets_jobs_start_again() -> None:
    core = leased(40.0)
    core.step(events.TimerTick(), 40.0)
    core.step(asked(LeaseVerb("", 80.0)), 41.0)
    assert of(core.step(asked(spec("b")), 41.0), effects.Spawn)


def test_a_successor_keeps_the_lease() -> None:
    core = leased(40.0)
    successor = KeeperCore(2, "boot")
    successor.step(events.Restored(core.snapshot()), 50.0)
    assert successor.leases.untils() == {"": 40.0}
    assert successor.snapshot() == core.snapshot()
    assert stops(successor.step(events.TimerTick(), 50.0)) == [(REASON, 55.0)]


def test_what_is_taken_off_the_record_is_off_it() -> None:
    entries: list[Entry] = [LeaseEntry("", 40.0), LeaseEntry("", None)]
    core = KeeperCore(2, "boot")
    core.step(events.Restored(entries), 0.0)
    assert core.snapshot() == []


def two_clusters() -> KeeperCore:
    """Give a core with an attempt of each of two clusters, both with a lease."""
    core = KeeperCore(1, "boot")
    core.step(events.Opened(7), 0.0)
    for pid, id in enumerate(("one.1.1", "two.1.1"), 100):
        core.step(asked(spec(id)), 0.0)
        core.step(spawned(id, pid), 0.0)
    core.step(asked(LeaseVerb("one", 40.0)), 0.0)
    core.step(asked(LeaseVerb("two", 40.0)), 0.0)
    return core


@pytest.mark.parametrize("until", [None, 500.0])
def test_a_broker_neither_renews_nor_ends_the_lease_of_another(
    until: float | None,
) -> None:
    core = two_clusters()
    core.step(asked(LeaseVerb("two", until)), 30.0)
    wanted = core.step(events.TimerTick(), 40.0)
    assert of(wanted, effects.SignalProcesses) == [
        effects.SignalProcesses("one.1.1", (15, 18))
    ]
    assert of(core.step(asked(spec("two.2.1")), 41.0), effects.Spawn)
    wanted = core.step(asked(spec("one.2.1")), 41.0)
    assert of(wanted, effects.GiveUp) == [effects.GiveUp("one.2.1", REASON)]


def test_a_successor_keeps_the_leases_of_all_clusters() -> None:
    core = two_clusters()
    core.step(asked(LeaseVerb("two", 60.0)), 0.0)
    successor = KeeperCore(2, "boot")
    successor.step(events.Restored(core.snapshot()), 1.0)
    [greeting] = of(successor.step(asked(HelloVerb()), 1.0), effects.SendHello)
    assert greeting.entry.leases == {"one": 40.0, "two": 60.0}
    assert successor.timers.next_due() is not None


@pytest.mark.parametrize("until", ["soon", -1, float("inf"), []])
def test_a_lease_that_is_no_time_is_refused(until: object) -> None:
    with pytest.raises(BadMessage):
        decode_verb(json.dumps({"v": "lease", "cluster": "", "until": until}).encode())


def test_a_lease_without_a_time_is_refused() -> None:
    with pytest.raises(BadMessage):
        decode_verb(b'{"v":"lease","cluster":""}')


# With a real keeper and real processes.


def test_a_real_job_ends_with_its_lease_while_no_daemon_is_there(
    daemon: Daemon, make_daemon: Make
) -> None:
    daemon.start("a", "sleep", "1000")
    job = daemon.expect("started")["pid"]
    until = boot_s() + 0.5
    daemon.send(v="lease", cluster="", until=until)
    assert daemon.expect("leased")["until"] == until
    daemon.close()
    wait_gone(job)
    assert boot_s() >= until
    again = make_daemon()
    [known] = again.hello["attempts"]
    exit = known if known["state"] == "exited" else again.expect("exited", "a")
    assert (exit["reason"], exit["signal"]) == (REASON, 15)
    refused = again.run("b", "true")
    assert (refused["code"], refused["reason"]) == (None, REASON)


def test_a_real_job_ends_with_its_lease_though_the_keeper_was_killed(
    daemon: Daemon, make_daemon: Make
) -> None:
    daemon.start("a", "sleep", "1000")
    job = daemon.expect("started")["pid"]
    until = boot_s() + 1.0
    daemon.send(v="lease", cluster="", until=until)
    daemon.expect("leased")
    kill_and_await(daemon.keeper)
    successor = make_daemon()
    assert successor.hello["leases"] == {"": until}
    successor.close()
    wait_gone(job)
    assert boot_s() >= until


def wait_gone(pid: int) -> None:
    """Wait until a process that is not our child is gone."""
    descriptor = os.pidfd_open(pid)
    try:
        assert wait_readable(descriptor)
    finally:
        os.close(descriptor)
