"""Attempts that wait for another one to be gone: decisions, without processes."""

from __future__ import annotations

from typing import Any

import pytest

from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.keeper_core import KeeperCore
from grass.keeper.core.starts import WaitingStarts
from grass.keeper.protocol import (
    ForgetVerb,
    LeaseVerb,
    LeaveVerb,
    RecalledEntry,
    RecallVerb,
    SignalVerb,
    StopVerb,
)

from .cores import asked, core_with_job, ended, of, spawned, spec


def waiting_of(*pairs: tuple[str, str]) -> WaitingStarts:
    waiting = WaitingStarts()
    for id, after in pairs:
        waiting.add(spec(id), after)
    return waiting


def followers(waiting: WaitingStarts, id: str) -> list[str]:
    return [each.id for each in waiting.take_followers(id)]


def core_with_waiting(*pairs: tuple[str, str]) -> KeeperCore:
    core = core_with_job()
    for id, after in pairs:
        assert core.step(asked(spec(id, after=after)), 1.0) == []
    return core


def finish(core: KeeperCore, id: str = "a", pid: int = 100) -> list[effects.Effect]:
    core.step(ended(pid), 2.0)
    return core.step(events.Surveyed(id, True, 0), 2.0)


def started(wanted: list[effects.Effect]) -> list[str]:
    return [spawn.start.id for spawn in of(wanted, effects.Spawn)]


def state_of(core: KeeperCore, id: str) -> Any:
    return core.attempts[id].state_entry().state


def test_followers_are_followers_once_and_in_order() -> None:
    waiting = waiting_of(("b", "a"), ("c", "a"), ("d", "b"))
    assert followers(waiting, "a") == ["b", "c"]
    assert followers(waiting, "a") == []
    assert followers(waiting, "b") == ["d"]


def test_one_after_an_exited_attempt_without_an_id_starts() -> None:
    core = core_with_job()
    core.step(asked(spec("")), 1.0)
    core.starts.begin("")
    core.step(spawned("", 101), 1.0)
    finish(core, "", 101)
    wanted = core.step(asked(spec("b", after="")), 3.0)
    assert started(wanted) == ["b"]


def test_one_after_an_exit_that_names_itself_starts() -> None:
    core = core_with_job()
    finish(core)
    core.attempts["a"].after = "a"
    assert started(core.step(asked(spec("b", after="a")), 3.0)) == ["b"]


def test_followers_of_a_dropped_attempt_take_its_place() -> None:
    waiting = waiting_of(("b", "a"), ("c", "a"), ("d", "b"), ("e", "b"))
    assert waiting.drop("b")
    assert not waiting.drop("b")
    assert waiting.drop("e")
    assert followers(waiting, "a") == ["d", "c"]


def test_one_that_was_followers_can_be_dropped_no_more() -> None:
    waiting = waiting_of(("b", "a"))
    assert followers(waiting, "a") == ["b"]
    assert not waiting.drop("b")


def test_waiting_holds_nothing_of_those_who_left() -> None:
    waiting = waiting_of(("b", "a"), ("c", "b"), ("d", "x"))
    waiting.drop("c")
    waiting.drop("b")
    waiting.take_followers("x")
    assert not any(vars(waiting).values())


def test_exit_of_the_predecessor_comes_before_the_spawn() -> None:
    core = core_with_waiting(("b", "a"))
    wanted = finish(core)
    kinds = [effects.ReleaseAttempt, effects.Publish, effects.Spawn]
    assert [type(effect) for effect in wanted] == kinds
    assert started(wanted) == ["b"]
    assert of(wanted, effects.Publish)[0].entry.id == "a"


def test_leftovers_of_the_predecessor_hold_the_next_one_back() -> None:
    core = core_with_waiting(("b", "a"))
    core.step(ended(), 2.0)
    assert not started(core.step(events.Surveyed("a", False, 0), 2.0))
    assert state_of(core, "b") == "waiting"
    assert started(core.step(events.Surveyed("a", True, 0), 2.1)) == ["b"]


def test_chain_goes_on_past_an_attempt_that_could_not_start() -> None:
    core = core_with_waiting(("b", "a"), ("c", "b"))
    assert started(finish(core)) == ["b"]
    wanted = core.step(events.SpawnFailed("b", "could not start: x", 5), 2.0)
    assert started(wanted) == ["c"]


def test_attempt_may_wait_for_one_that_is_still_starting() -> None:
    core = core_with_job()
    core.step(asked(spec("b")), 1.0)
    assert core.step(asked(spec("c", after="b")), 1.0) == []


def test_unknown_exited_or_own_predecessor_is_no_reason_to_wait() -> None:
    core = core_with_job()
    finish(core)
    for id, after in (("b", "nobody"), ("c", "a"), ("d", "d")):
        assert started(core.step(asked(spec(id, after=after)), 3.0)) == [id]


def test_recall_drops_only_what_still_waits() -> None:
    core = core_with_waiting(("b", "a"), ("c", "b"))
    wanted = core.step(asked(RecallVerb(["a", "b", "b", "nobody"])), 1.0)
    assert wanted == [effects.Tell(RecalledEntry("b"))]
    assert "b" not in core.attempts
    assert started(finish(core)) == ["c"]
    core.starts.begin("c")
    assert core.step(asked(RecallVerb(["c", "a"])), 2.0) == []


def test_recalled_attempt_can_be_asked_for_again() -> None:
    core = core_with_waiting(("b", "a"))
    core.step(asked(RecallVerb(["b"])), 1.0)
    assert started(core.step(asked(spec("b")), 1.0)) == ["b"]


def test_stop_of_a_waiting_attempt_records_it_and_gives_it_up() -> None:
    core = core_with_waiting(("b", "a"), ("c", "b"))
    recorded, given_up = core.step(asked(StopVerb("b", 15, 9.0, "cancelled")), 1.0)
    assert recorded == effects.Record(core.attempts["b"].spawning)
    assert given_up == effects.GiveUp("b", "cancelled")
    wanted = core.step(events.SpawnFailed("b", "cancelled", 7), 1.0)
    [published] = of(wanted, effects.Publish)
    assert published.entry.reason == "cancelled"
    assert not started(wanted)
    assert started(finish(core)) == ["c"]


def stop(core: KeeperCore, id: str) -> None:
    core.step(asked(StopVerb(id, 15, 9.0, "cancelled")), 1.0)
    core.step(events.SpawnFailed(id, "cancelled", 7), 1.0)


@pytest.mark.parametrize("stopped", ["c", "bc", "cb"])
def test_one_behind_a_stopped_attempt_waits_for_those_before_it(stopped: str) -> None:
    core = core_with_waiting(("b", "a"), ("c", "b"))
    for id in stopped:
        stop(core, id)
    # It was sent before its daemon heard that `c` is gone.
    assert core.step(asked(spec("d", after="c")), 1.0) == []
    if "b" in stopped:
        assert started(finish(core)) == ["d"]
    else:
        assert started(finish(core)) == ["b"]
        core.step(spawned("b", 200), 2.0)
        assert started(finish(core, "b", 200)) == ["d"]


def test_one_behind_a_stopped_attempt_starts_when_those_before_it_are_gone() -> None:
    core = core_with_waiting(("b", "a"))
    stop(core, "b")
    finish(core)
    assert started(core.step(asked(spec("c", after="b")), 3.0)) == ["c"]


def test_one_behind_a_refused_attempt_waits_for_those_before_it() -> None:
    core = core_with_job()
    core.step(asked(LeaseVerb("", 1.0)), 0.0)
    core.step(asked(spec("b", after="a")), 1.0)
    core.step(events.SpawnFailed("b", "cut off", 7), 1.0)
    core.step(asked(LeaseVerb("", 9.0)), 1.0)
    assert core.step(asked(spec("c", after="b")), 1.0) == []
    assert started(finish(core)) == ["c"]


def test_known_waiting_attempt_is_answered_and_signals_pass_it_by() -> None:
    core = core_with_waiting(("b", "a"))
    [reply] = of(core.step(asked(spec("b"), 8), 1.0), effects.Reply)
    assert (reply.connection, reply.entry.e) == (8, "waiting")
    assert core.step(asked(SignalVerb("b", 10)), 1.0) == []
    assert core.step(asked(ForgetVerb(["b"])), 1.0) == []


def test_snapshot_leaves_waiting_attempts_out_and_stopped_ones_in() -> None:
    core = core_with_waiting(("b", "a"), ("c", "a"))
    core.step(asked(StopVerb("c", 15, 9.0, "cancelled")), 1.0)
    core.step(events.SpawnFailed("c", "cancelled", 7), 1.0)
    successor = KeeperCore(2, "boot")
    successor.step(events.Restored(core.snapshot()), 3.0)
    assert list(successor.attempts) == ["a", "c"]
    assert state_of(successor, "c") == "exited"


def test_keeper_stays_until_the_last_of_a_chain_is_forgotten() -> None:
    core = core_with_waiting(("b", "a"))
    core.step(asked(LeaveVerb()), 1.0)
    assert not of(finish(core), effects.Exit)
    assert not of(core.step(asked(ForgetVerb(["a"])), 2.0), effects.Exit)
    core.step(spawned("b", 200), 2.0)
    assert not of(finish(core, "b", 200), effects.Exit)
    assert of(core.step(asked(ForgetVerb(["b"])), 3.0), effects.Exit)
