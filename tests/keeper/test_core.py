"""The core's decisions, with time and processes made up."""

from __future__ import annotations

from itertools import pairwise

from grass.keeper.core import effects, events
from grass.keeper.core.keeper_core import SYNC_S, KeeperCore

from .cores import core_with_job, ended, of, spec


def core_with_two_in_line() -> KeeperCore:
    core = KeeperCore(1, "boot")
    core.step(events.Opened(7), 0.0)
    for id in ("a", "b"):
        wanted = core.step(events.Start(7, spec(id)), 0.0)
        assert wanted == [effects.Spawn(spec(id))]
    return core


def test_each_attempt_is_put_on_record_when_its_own_turn_has_come() -> None:
    core = core_with_two_in_line()
    assert core.snapshot() == []
    assert core.spawning("a") == [core.attempts["a"].spawning_entry()]
    assert {entry["id"] for entry in core.snapshot()} == {"a"}


def test_what_was_wished_of_an_attempt_in_line_is_put_on_record_with_it() -> None:
    core = core_with_two_in_line()
    assert not of(core.step(events.Suspend(7, "b"), 0.0), effects.Record)
    entries = core.spawning("b")
    assert [entry["e"] for entry in entries] == ["spawning", "suspended"]


def test_an_attempt_in_line_that_is_stopped_never_runs() -> None:
    core = core_with_two_in_line()
    recorded, given_up = core.step(events.Stop(7, "b", 15, 3.0, "cancelled"), 0.0)
    assert recorded == effects.Record(core.attempts["b"].spawning_entry())
    assert given_up == effects.GiveUp("b", "cancelled")
    assert not core._custody._in_line.keys() & {"b"}


def test_an_attempt_in_line_that_was_recalled_is_started_as_it_is_asked_for_again() -> (
    None
):
    core = KeeperCore(1, "boot")
    core.step(events.Opened(7), 0.0)
    first, again = spec("b"), spec("b")
    core.step(events.Start(7, first), 0.0)
    told = core.step(events.Recall(["b"]), 0.0)
    assert told == [effects.Tell({"e": "recalled", "id": "b"})]
    core.step(events.Start(7, again), 0.0)
    assert (core.is_due(first), core.is_due(again)) == (False, True)


def test_an_attempt_whose_start_is_not_on_record_stays_in_line() -> None:
    core = KeeperCore(1, "boot")
    core.step(events.Opened(7), 0.0)
    asked = spec("b")
    core.step(events.Start(7, asked), 0.0)
    core.spawning("b")
    core.put_off(asked)
    assert core.is_due(asked)
    assert core.snapshot() == []
    assert core.step(events.Recall(["b"]), 0.0) == [
        effects.Tell({"e": "recalled", "id": "b"})
    ]


def test_records_that_cannot_be_written_are_tried_again_and_again() -> None:
    core = KeeperCore(1, "boot")
    pauses = []
    for _ in range(10):
        core.step(events.Flushed("full"), 100.0)
        due = core.timers.next_due()
        assert due is not None
        pauses.append(due - 100.0)
        core.step(events.Tick(), due)
    assert pauses == sorted(pauses)
    assert pauses[0] < 0.1
    assert pauses[-1] == 5.0
    core.step(events.Flushed("full"), 100.0)
    assert not core.may_start
    core.step(events.Flushed(None), 100.0)
    assert core.may_start


def test_exit_is_published_only_when_the_tree_is_empty() -> None:
    core = core_with_job()
    assert core.step(ended(status=256), 1.0) == [effects.Survey("a")]
    wanted = core.step(events.Surveyed("a", False, 0), 1.0)
    assert of(wanted, effects.SignalTree) == [effects.SignalTree("a", (15, 18))]
    assert not of(wanted, effects.Publish)
    assert core.step(ended(pid=999), 1.1) == [effects.Survey("a")]
    [published] = of(core.step(events.Surveyed("a", True, 9), 1.1), effects.Publish)
    assert published.entry["code"] == 1
    assert published.entry["output_bytes"] == 9


def test_kill_is_repeated_with_growing_pauses_until_the_end() -> None:
    core = core_with_job()
    core.step(events.Stop(7, "a", 15, 3.0, "cancelled"), 10.0)
    kills: list[float] = []
    while len(kills) < 10:
        due = core.timers.next_due()
        assert due is not None
        if of(core.step(events.Tick(), due), effects.KillTree):
            kills.append(due)
    pauses = [later - earlier for earlier, later in pairwise(kills)]
    assert kills[0] == 13.0
    assert pauses == sorted(pauses)
    assert round(pauses[-1], 6) == 5.0
    assert core.attempts["a"].full_entry()["stopping"]


def test_every_deadline_ends_with_the_attempt() -> None:
    core = core_with_job(time_limit=50.0, max_output=100)
    core.step(events.Tick(), 0.1)
    assert core.timers.next_due() is not None
    core.step(ended(), 1.0)
    core.step(events.Surveyed("a", True, 0), 1.0)
    core.step(events.Forget(["a"]), 1.0)
    core.step(events.Tick(), 1.0 + SYNC_S)
    assert core.timers.next_due() is None


def test_output_checks_come_closer_as_the_limit_does() -> None:
    core = core_with_job(max_output=8 << 30)
    core.step(events.Tick(), 0.1)
    assert core.timers.next_due() == 8.1
    assert core.step(events.Tick(), 8.1) == [effects.Measure("a")]
    core.step(events.Measured("a", 6 << 30), 8.1)
    assert core.timers.next_due() == 10.1
    core.step(events.Tick(), 10.1)
    core.step(events.Measured("a", 8 << 30), 10.1)
    assert core.timers.next_due() == 10.35
    core.step(events.Tick(), 10.35)
    wanted = core.step(events.Measured("a", (8 << 30) + 1), 10.35)
    assert of(wanted, effects.SignalTree)


def test_snapshot_restores_to_the_same_snapshot() -> None:
    core = core_with_job()
    core.step(events.Enclosed("a", "/cg"), 0.1)
    core.step(events.Stop(7, "a", 15, 3.0, "cancelled"), 1.0)
    core.step(events.Start(7, spec("b")), 2.0)
    core.step(events.SpawnFailed("b", "could not start: x", 5), 2.0)
    core.step(events.Start(7, spec("c")), 2.0)
    core.spawning("c")
    core.step(events.Forked("c", 300, 9), 2.0)
    successor = KeeperCore(2, "boot")
    wanted = successor.step(events.Restored(core.snapshot()), 3.0)
    assert successor.snapshot() == core.snapshot()
    assert of(wanted, effects.Adopt) == [
        effects.Adopt("a", 100, 5),
        effects.Adopt("c", 300, 9),
    ]


def test_adopted_process_nobody_reaps_is_lost_in_the_end() -> None:
    core = KeeperCore(2, "boot")
    core.step(events.Restored(core_with_job().snapshot()), 0.0)
    core.step(events.Adopted("a", 100, 5, 0), 0.0)
    now, wanted = 0.0, core.step(events.AdoptedUnclear("a", True, 1), 0.0)
    while not of(wanted, effects.Survey):
        now += 5.0
        core.step(events.Tick(), now)
        wanted = core.step(events.AdoptedUnclear("a", True, 1), now)
    core.step(events.Surveyed("a", True, 0), now)
    assert core.attempts["a"].full_entry()["lost"]
    assert now < 200


def test_keeper_that_no_daemon_ever_greets_leaves() -> None:
    core = KeeperCore(1, "boot")
    assert not of(core.step(events.Restored([]), 0.0), effects.Exit)
    assert not of(core.step(events.Tick(), 29.0), effects.Exit)
    assert of(core.step(events.Tick(), 30.0), effects.Exit)


def test_keeper_with_an_unacknowledged_exit_stays_while_its_socket_does() -> None:
    core = core_with_job()
    core.step(ended(), 1.0)
    core.step(events.Surveyed("a", True, 0), 1.0)
    wanted = core.step(events.Closed(7), 1.0)
    assert wanted == [effects.CheckSocket()]
    assert of(core.step(events.SocketMissing(), 1.0), effects.Exit)


def test_the_code_of_a_process_found_by_its_marker_is_not_taken_for_the_jobs() -> None:
    spawning = core_with_job().snapshot()[:1]
    core = KeeperCore(2, "boot")
    wanted = core.step(events.Restored(spawning), 0.0)
    assert of(wanted, effects.Search) == [effects.Search("a")]
    core.step(events.Adopted("a", 101, 6, 0), 0.0)
    # It may be a child that the main process left behind.
    core.step(events.AdoptedEnded("a", 0, 1), 1.0)
    [published] = of(core.step(events.Surveyed("a", True, 0), 1.0), effects.Publish)
    assert published.entry["lost"]
    assert published.entry["code"] is None


def test_a_successor_knows_too_which_process_was_only_found() -> None:
    core = KeeperCore(2, "boot")
    core.step(events.Restored(core_with_job().snapshot()[:1]), 0.0)
    core.step(events.Adopted("a", 101, 6, 0), 0.0)
    successor = KeeperCore(3, "boot")
    successor.step(events.Restored(core.snapshot()), 1.0)
    assert successor.attempts["a"].found


def test_a_daemon_is_told_whom_an_attempt_follows_now() -> None:
    core = core_with_job()
    core.step(events.Start(7, spec("b"), "a"), 0.0)
    core.step(events.Start(7, spec("c"), "b"), 0.0)
    core.step(events.Recall(["b"]), 0.0)
    [greeting] = of(core.step(events.Hello(7), 0.0), effects.Greet)
    told = {one["id"]: one["after"] for one in greeting.entry["attempts"]}
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
    assert exit.entry["ran_s"] == 7.5
    after = KeeperCore(2, "another boot")
    after.step(events.Restored(core.snapshot(), rebooted=True), 0.0)
    assert after.attempts["a"].full_entry()["ran_s"] == 7.5


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
