"""A guest: a process that others started, which the keeper watches and never owns."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from grass.keeper.codec import BadMessage, decode_verb
from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.keeper_core import KeeperCore
from grass.keeper.exit_reasons import GUEST_ENDED, GUEST_GAVE_UP, GUEST_GONE
from grass.keeper.process_table import start_ticks
from grass.keeper.protocol import (
    GiveBackVerb,
    StopVerb,
    SuspendVerb,
)

from .conversation import Daemon, alive, kill_and_await
from .cores import asked, of, spec
from .successors import Make, exit_of, replaced, state_of

Guest = subprocess.Popen[bytes]


@pytest.fixture
def process() -> Iterator[Guest]:
    """Give a process that is no child of a keeper."""
    ends = "import sys; sys.stdin.read(); sys.exit(3)"
    guest = subprocess.Popen([sys.executable, "-c", ends], stdin=subprocess.PIPE)
    yield guest
    guest.kill()
    guest.communicate()


def watch(daemon: Daemon, guest: Guest, **fields: object) -> None:
    fields = {"guest": guest.pid, "guest_ticks": start_ticks(guest.pid), **fields}
    daemon.start("a", **fields)


def test_guest_is_watched_and_ends_when_it_is_given_back(
    daemon: Daemon, process: Guest
) -> None:
    watch(daemon, process)
    assert daemon.expect("started")["pid"] == process.pid
    daemon.send(v="giveback", id="a", code=7)
    exited = daemon.expect("exited")
    assert (exited["code"], exited["lost"], exited["reason"]) == (7, False, None)
    assert exited["ran_s"] is not None
    assert alive(process.pid)


def test_guest_ends_with_its_process(daemon: Daemon, process: Guest) -> None:
    watch(daemon, process)
    daemon.expect("started")
    process.communicate(b"")
    exited = daemon.expect("exited")
    # The kernel tells the code from Linux 6.15 on.
    assert (exited["code"], exited["reason"]) in [(3, None), (None, GUEST_ENDED)]
    assert not exited["lost"]


def test_units_of_a_guest_do_not_wait_for_its_parent(
    daemon: Daemon, process: Guest
) -> None:
    watch(daemon, process)
    daemon.expect("started")
    process.kill()
    # It is not reaped before the end of this test.
    assert not daemon.expect("exited")["lost"]


def test_process_that_is_gone_is_never_started(daemon: Daemon, process: Guest) -> None:
    watch(daemon, process, guest_ticks=1)
    exited = daemon.expect("exited")
    assert (exited["code"], exited["reason"]) == (None, GUEST_GONE)
    assert alive(process.pid)


def test_stopped_guest_is_signalled_alone(daemon: Daemon, process: Guest) -> None:
    watch(daemon, process)
    daemon.expect("started")
    daemon.send(v="stop", id="a", signal=15, grace=1000, reason="cancelled")
    assert process.wait() == -15
    assert daemon.expect("exited")["reason"] == "cancelled"


def test_guest_outlives_its_keeper(
    daemon: Daemon, make_daemon: Make, process: Guest
) -> None:
    watch(daemon, process)
    daemon.expect("started")
    successor = replaced(daemon, make_daemon)
    assert state_of(successor, "a")["pid"] == process.pid
    successor.send(v="giveback", id="a", code=0)
    assert successor.expect("exited")["code"] == 0


def test_guest_that_ended_without_a_keeper_is_not_lost(
    daemon: Daemon, make_daemon: Make, process: Guest
) -> None:
    watch(daemon, process)
    daemon.expect("started")
    kill_and_await(daemon.keeper)
    process.communicate(b"")
    exited = exit_of(make_daemon(), "a")
    assert not exited["lost"]
    assert exited["reason"] == GUEST_ENDED


def test_only_a_guest_has_no_command() -> None:
    start = b'{"v":"start","id":"a","argv":[],"env":{},"cwd":"/","output":"o"%s}'
    assert decode_verb(start % b',"guest":5').argv == []  # type: ignore[union-attr]
    with pytest.raises(BadMessage, match="argv is empty"):
        decode_verb(start % b"")


def core_with_guest() -> KeeperCore:
    core = KeeperCore(1, "boot")
    core.step(events.Restored([]), 0.0)
    core.step(events.Opened(7), 0.0)
    core.step(asked(spec(argv=[], guest=100, guest_ticks=5)), 0.0)
    core.starts.begin("a")
    core.step(events.Adopted("a", 100, 5, 1), 0.0)
    return core


def test_guest_is_on_record_with_its_process_before_it_begins() -> None:
    core = KeeperCore(1, "boot")
    core.step(asked(spec(argv=[], guest=100, guest_ticks=5)), 0.0)
    entries = core.starts.begin("a")
    successor = KeeperCore(2, "boot")
    wanted = successor.step(events.Restored(list(entries)), 0.0)
    assert of(wanted, effects.Adopt) == [effects.Adopt("a", 100, 5)]
    assert of(wanted, effects.Know)[0].guest


def test_end_of_a_child_with_the_same_pid_is_not_the_end_of_the_guest() -> None:
    core = core_with_guest()
    core.step(events.ChildEnded(100, 0, None, 2), 1.0)
    assert core.attempts["a"].state == "running"


def test_job_cannot_be_given_back() -> None:
    core = KeeperCore(1, "boot")
    core.step(asked(spec()), 0.0)
    core.starts.begin("a")
    core.step(events.Spawned("a", 9, 5, 1, 0, 0), 0.0)
    assert not of(core.step(asked(GiveBackVerb("a")), 1.0), effects.EndGuest)


def test_guest_that_has_a_time_limit_is_stopped() -> None:
    core = KeeperCore(1, "boot")
    core.step(asked(spec(argv=[], guest=100, guest_ticks=5, time_limit=3.0)), 0.0)
    core.starts.begin("a")
    core.step(events.Adopted("a", 100, 5, 1), 0.0)
    wanted = core.step(events.TimerTick(), 4.0)
    assert of(wanted, effects.SignalProcesses)


def test_guest_that_could_not_be_watched_yet_gives_up() -> None:
    core = KeeperCore(1, "boot")
    core.step(asked(spec(argv=[], guest=100, guest_ticks=5)), 0.0)
    core.starts.begin("a")
    core.step(events.AdoptedUnclear("a", False, 1), 0.0)
    core.step(asked(GiveBackVerb("a", 7)), 1.0)
    core.step(events.GivenBack("a", 7, 2), 1.0)
    assert (core.attempts["a"].code, core.attempts["a"].reason) == (None, GUEST_GAVE_UP)


def test_guest_that_was_suspended_goes_on_when_it_gives_back() -> None:
    core = core_with_guest()
    core.step(asked(SuspendVerb("a")), 1.0)
    wanted = core.step(events.GivenBack("a", 0, 2), 2.0)
    assert of(wanted, effects.SignalProcesses)[0].signals == (18,)


def test_end_of_a_guest_is_not_told_before_it_is_on_record() -> None:
    core = core_with_guest()
    wanted = core.step(events.GivenBack("a", 7, 2), 1.0)
    assert [one.entry.code for one in of(wanted, effects.Record)] == [7]
    assert of(wanted, effects.Write) == [effects.Write("a")]
    # A successor would find a process that lives, and believe that it has its units.
    assert not of(core.step(events.Written("a", False), 1.0), effects.Survey)
    assert of(core.step(events.TimerTick(), 9.0), effects.Write)
    assert of(core.step(events.Written("a", True), 9.0), effects.Survey)
    wanted = core.step(events.Surveyed("a", True, 0), 9.0)
    assert of(wanted, effects.Publish)[0].entry.code == 7


def test_process_of_a_guest_that_gave_back_is_left_alone() -> None:
    core = core_with_guest()
    core.step(asked(StopVerb("a", 15, 3.0)), 1.0)
    core.step(events.GivenBack("a", 7, 2), 2.0)
    core.step(events.Written("a", False), 2.0)
    late = core.step(asked(StopVerb("a", 15, 0.0)), 3.0)
    later = core.step(events.TimerTick(), 9.0)
    assert not of(late + later, effects.KillProcesses)
    assert not of(late + later, effects.SignalProcesses)


@pytest.mark.parametrize("recorded", [False, True])
def test_end_of_its_process_changes_nothing_after_a_guest_gave_back(
    recorded: bool,
) -> None:
    core = core_with_guest()
    core.step(events.GivenBack("a", 7, 2), 1.0)
    core.step(events.Written("a", recorded), 1.0)
    if recorded:
        core.step(events.Surveyed("a", True, 0), 1.0)
    core.step(events.AdoptedUnclear("a", True, 3), 2.0)
    assert not core.step(events.AdoptedEnded("a", None, 3), 2.0)
    assert (core.attempts["a"].code, core.attempts["a"].reason) == (7, None)


def test_guest_that_has_not_begun_never_does() -> None:
    core = KeeperCore(1, "boot")
    core.step(asked(spec(argv=[], guest=100, guest_ticks=5)), 0.0)
    wanted = core.step(asked(GiveBackVerb("a", 7)), 0.0)
    assert of(wanted, effects.GiveUp) == [effects.GiveUp("a", GUEST_GAVE_UP)]
    assert not core.starts.any_due
