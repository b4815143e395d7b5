"""The core's decisions, with time and processes made up."""

from __future__ import annotations

from itertools import pairwise

from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.attempt import attempts_of
from grass.keeper.core.exits import MANY
from grass.keeper.core.keeper_core import SYNC_S, KeeperCore
from grass.keeper.protocol import (
    ForgetVerb,
    HelloVerb,
    RecalledEntry,
    RecallVerb,
    SpawningEntry,
    StopVerb,
    SuspendedEntry,
    SuspendVerb,
)

from .cores import asked, core_with_job, ended, of, spawned, spec


def core_with_two_in_line() -> KeeperCore:
    core = KeeperCore(1, "boot")
    core.step(events.Opened(7), 0.0)
    for id in ("a", "b"):
        wanted = core.step(asked(spec(id)), 0.0)
        assert wanted == [effects.Spawn(spec(id))]
    return core


def test_each_attempt_is_put_on_record_when_its_own_turn_has_come() -> None:
    core = core_with_two_in_line()
    assert core.snapshot() == []
    assert core.starts.begin("a") == [core.attempts["a"].spawning]
    assert core.snapshot() == [core.attempts["a"].spawning]


def test_what_was_asked_of_an_attempt_in_line_is_put_on_record_with_it() -> None:
    core = core_with_two_in_line()
    assert not of(core.step(asked(SuspendVerb("b")), 0.0), effects.Record)
    entries = core.starts.begin("b")
    assert [type(entry) for entry in entries] == [SpawningEntry, SuspendedEntry]


def test_an_attempt_in_line_that_is_stopped_never_runs() -> None:
    core = core_with_two_in_line()
    recorded, given_up = core.step(asked(StopVerb("b", 15, 3.0, "cancelled")), 0.0)
    assert recorded == effects.Record(core.attempts["b"].spawning)
    assert given_up == effects.GiveUp("b", "cancelled")
    assert "b" not in core.starts._due


def test_an_attempt_in_line_that_was_recalled_is_started_as_it_is_asked_for_again() -> (
    None
):
    core = KeeperCore(1, "boot")
    core.step(events.Opened(7), 0.0)
    first, again = spec("b"), spec("b")
    core.step(asked(first), 0.0)
    told = core.step(asked(RecallVerb(["b"])), 0.0)
    assert told == [effects.Tell(RecalledEntry("b"))]
    core.step(asked(again), 0.0)
    assert (core.starts.is_due(first), core.starts.is_due(again)) == (False, True)


def test_an_attempt_whose_start_is_not_on_record_stays_in_line() -> None:
    core = KeeperCore(1, "boot")
    core.step(events.Opened(7), 0.0)
    start = spec("b")
    core.step(asked(start), 0.0)
    core.starts.begin("b")
    core.starts.postpone(start, 0.0)
    assert core.starts.is_due(start)
    assert core.snapshot() == []
    assert core.step(asked(RecallVerb(["b"])), 0.0) == [
        effects.Tell(RecalledEntry("b"))
    ]


def test_records_that_cannot_be_written_are_tried_again_and_again() -> None:
    core = KeeperCore(1, "boot")
    pauses = []
    for _ in range(10):
        core.step(events.Flushed("full"), 100.0)
        due = core.timers.next_due()
        assert due is not None
        pauses.append(due - 100.0)
        core.step(events.TimerTick(), due)
    assert pauses == sorted(pauses)
    assert pauses[0] < 0.1
    assert pauses[-1] == 5.0
    core.step(events.Flushed("full"), 100.0)
    assert not core.start_failures.may_try
    core.step(events.Flushed(None), 100.0)
    assert core.start_failures.may_try


def test_exit_is_published_only_when_the_tree_is_empty() -> None:
    core = core_with_job()
    assert core.step(ended(status=256), 1.0) == [effects.Survey("a")]
    wanted = core.step(events.Surveyed("a", False, 0), 1.0)
    assert of(wanted, effects.SignalProcesses) == [
        effects.SignalProcesses("a", (15, 18))
    ]
    assert not of(wanted, effects.Publish)
    assert core.step(ended(pid=999), 1.1) == [effects.Survey("a")]
    [published] = of(core.step(events.Surveyed("a", True, 9), 1.1), effects.Publish)
    assert published.entry.code == 1
    assert published.entry.output_bytes == 9


def test_kill_is_repeated_with_growing_pauses_until_the_end() -> None:
    core = core_with_job()
    core.step(asked(StopVerb("a", 15, 3.0, "cancelled")), 10.0)
    kills: list[float] = []
    while len(kills) < 10:
        due = core.timers.next_due()
        assert due is not None
        if of(core.step(events.TimerTick(), due), effects.KillProcesses):
            kills.append(due)
    pauses = [later - earlier for earlier, later in pairwise(kills)]
    assert kills[0] == 13.0
    assert pauses == sorted(pauses)
    assert round(pauses[-1], 6) == 5.0
    assert core.attempts["a"].state_entry().stopping


def test_every_deadline_ends_with_the_attempt() -> None:
    core = core_with_job(time_limit=50.0, max_output=100)
    core.step(events.TimerTick(), 0.1)
    assert core.timers.next_due() is not None
    core.step(ended(), 1.0)
    core.step(events.Surveyed("a", True, 0), 1.0)
    core.step(asked(ForgetVerb(["a"])), 1.0)
    core.step(events.TimerTick(), 1.0 + SYNC_S)
    assert core.timers.next_due() is None


def test_a_job_has_a_cgroup_once_it_is_not_short() -> None:
    core = core_with_job()
    assert not of(core.step(events.TimerTick(), 0.1), effects.Enclose)
    wanted = core.step(events.TimerTick(), 0.31)
    assert of(wanted, effects.Enclose) == [effects.Enclose("a", None, None)]


def test_the_signal_before_the_time_limit_comes_once() -> None:
    core = core_with_job(time_limit=50.0, limit_signal=10, limit_signal_before=20.0)
    core.step(events.TimerTick(), 0.1)
    core.step(events.TimerTick(), 0.31)
    assert core.timers.next_due() == 30.0
    warned = core.step(events.TimerTick(), 30.0)
    assert of(warned, effects.SignalHandlers) == [effects.SignalHandlers("a", 10)]
    assert core.timers.next_due() == 50.0
    successor = attempts_of(core.snapshot())["a"]
    assert successor.warned


def test_an_attempt_that_is_being_stopped_gets_no_signal_before_its_limit() -> None:
    core = core_with_job(time_limit=50.0, limit_signal=10, limit_signal_before=20.0)
    core.step(events.TimerTick(), 0.1)
    core.step(asked(StopVerb("a", grace=1000.0)), 5.0)
    assert not of(core.step(events.TimerTick(), 30.0), effects.SignalHandlers)


def test_output_checks_come_closer_as_the_limit_does() -> None:
    core = core_with_job(max_output=8 << 30)
    core.step(events.TimerTick(), 0.1)
    core.step(events.TimerTick(), 0.31)
    assert core.timers.next_due() == 8.1
    assert core.step(events.TimerTick(), 8.1) == [effects.Measure("a")]
    core.step(events.OutputMeasured("a", 6 << 30), 8.1)
    assert core.timers.next_due() == 10.1
    core.step(events.TimerTick(), 10.1)
    core.step(events.OutputMeasured("a", 8 << 30), 10.1)
    assert core.timers.next_due() == 10.35
    core.step(events.TimerTick(), 10.35)
    wanted = core.step(events.OutputMeasured("a", (8 << 30) + 1), 10.35)
    assert of(wanted, effects.SignalProcesses)


def test_snapshot_restores_to_the_same_snapshot() -> None:
    core = core_with_job()
    core.step(events.Enclosed("a", "/cg"), 0.1)
    core.step(asked(StopVerb("a", 15, 3.0, "cancelled")), 1.0)
    core.step(asked(spec("b")), 2.0)
    core.step(events.SpawnFailed("b", "could not start: x", 5), 2.0)
    core.step(asked(spec("c")), 2.0)
    core.starts.begin("c")
    core.step(events.Forked("c", 300, 9), 2.0)
    successor = KeeperCore(2, "boot")
    wanted = successor.step(events.Restored(core.snapshot()), 3.0)
    assert successor.snapshot() == core.snapshot()
    assert of(wanted, effects.Adopt) == [
        effects.Adopt("a", 100, 5),
        effects.Adopt("c", 300, 9),
    ]


def test_adopted_process_that_is_never_reaped_is_lost_in_the_end() -> None:
    core = KeeperCore(2, "boot")
    core.step(events.Restored(core_with_job().snapshot()), 0.0)
    core.step(events.Adopted("a", 100, 5, 0), 0.0)
    now, wanted = 0.0, core.step(events.AdoptedUnclear("a", True, 1), 0.0)
    while not of(wanted, effects.Survey):
        now += 5.0
        core.step(events.TimerTick(), now)
        wanted = core.step(events.AdoptedUnclear("a", True, 1), now)
    core.step(events.Surveyed("a", True, 0), now)
    assert core.attempts["a"].state_entry().lost
    assert now < 200


def test_keeper_that_no_daemon_ever_greets_leaves() -> None:
    core = KeeperCore(1, "boot")
    assert not of(core.step(events.Restored([]), 0.0), effects.Exit)
    assert not of(core.step(events.TimerTick(), 29.0), effects.Exit)
    assert of(core.step(events.TimerTick(), 30.0), effects.Exit)


def test_keeper_with_an_unacknowledged_exit_stays_while_its_socket_does() -> None:
    core = core_with_job()
    core.step(ended(), 1.0)
    core.step(events.Surveyed("a", True, 0), 1.0)
    wanted = core.step(events.Closed(7), 1.0)
    assert wanted == [effects.CheckSocket()]
    assert of(core.step(events.SocketMissing(), 1.0), effects.Exit)


def test_a_sigterm_without_the_socket_ends_the_jobs() -> None:
    core = core_with_job()
    core.step(events.Closed(7), 1.0)
    (check,) = of(core.step(events.Terminated(), 1.0), effects.CheckSocket)
    missing = events.SocketMissing(ends_jobs=check.ends_jobs)
    assert of(core.step(missing, 1.0), effects.SignalProcesses)


def test_a_sigterm_while_the_socket_was_there_ends_no_job_when_it_is_lost_later() -> (
    None
):
    core = core_with_job()
    core.step(events.Closed(7), 1.0)
    # The check finds the socket.
    core.step(events.Terminated(), 1.0)
    (check,) = of(core.step(events.TimerTick(), 9000.0), effects.CheckSocket)
    missing = events.SocketMissing(ends_jobs=check.ends_jobs)
    assert not of(core.step(missing, 9000.0), effects.SignalProcesses)


def test_the_code_of_a_process_found_by_its_marker_is_not_taken_for_the_jobs() -> None:
    spawning = core_with_job().snapshot()[:1]
    core = KeeperCore(2, "boot")
    wanted = core.step(events.Restored(spawning), 0.0)
    assert of(wanted, effects.Search) == [effects.Search("a")]
    core.step(events.Adopted("a", 101, 6, 0), 0.0)
    # It may be a child that the main process left behind.
    core.step(events.AdoptedEnded("a", 0, 1), 1.0)
    [published] = of(core.step(events.Surveyed("a", True, 0), 1.0), effects.Publish)
    assert published.entry.lost
    assert published.entry.code is None


def test_a_successor_knows_too_which_process_was_only_found() -> None:
    core = KeeperCore(2, "boot")
    core.step(events.Restored(core_with_job().snapshot()[:1]), 0.0)
    core.step(events.Adopted("a", 101, 6, 0), 0.0)
    successor = KeeperCore(3, "boot")
    successor.step(events.Restored(core.snapshot()), 1.0)
    assert successor.attempts["a"].found


def test_a_daemon_is_told_whom_an_attempt_follows_now() -> None:
    core = core_with_job()
    core.step(asked(spec("b", after="a")), 0.0)
    core.step(asked(spec("c", after="b")), 0.0)
    core.step(asked(RecallVerb(["b"])), 0.0)
    [greeting] = of(core.step(asked(HelloVerb()), 0.0), effects.SendHello)
    told = {one.id: one.after for one in greeting.entry.attempts}
    assert told == {"a": None, "c": "a"}


def test_how_long_it_ran_is_measured_by_the_clock_that_cannot_jump() -> None:
    core = core_with_job()
    (exit,) = of(
        [
            *core.step(ended(), 7.5),
            *core.step(events.Surveyed("a", True, 0), 9.0),
        ],
        effects.Publish,
    )
    assert exit.entry.ran_s == 7.5
    after = KeeperCore(2, "another boot")
    after.step(events.Restored(core.snapshot(), rebooted=True), 0.0)
    assert after.attempts["a"].state_entry().ran_s == 7.5


def test_how_long_an_adopted_one_ran_counts_from_its_start() -> None:
    core = KeeperCore(2, "boot")
    core.step(events.Restored(core_with_job().snapshot()), 3.0)
    core.step(events.Adopted("a", 100, 5, 1), 3.0)
    core.step(events.AdoptedEnded("a", 0, 1), 8.0)
    assert core.attempts["a"].ran_s == 8.0


def test_how_long_one_ran_that_is_missing_is_unknown() -> None:
    core = KeeperCore(2, "boot")
    core.step(events.Restored(core_with_job().snapshot()), 3.0)
    core.step(events.Missing("a", 1), 3.0)
    assert core.attempts["a"].ran_s is None


def test_an_exit_with_many_behind_it_may_wait_for_others() -> None:
    core = KeeperCore(1, "boot")
    core.step(events.Opened(7), 0.0)
    ids = [str(number) for number in range(MANY + 2)]
    for id, before in zip(ids, [None, *ids], strict=False):
        core.step(asked(spec(id, after=before)), 0.0)
    urgent = []
    for id in ids:
        core.starts.begin(id)
        core.step(spawned(id), 0.0)
        core.step(ended(), 0.0)
        wanted = core.step(events.Surveyed(id, True, 0), 0.0)
        urgent += [one.urgent for one in of(wanted, effects.Publish)]
    assert urgent == [False, False] + [True] * MANY
