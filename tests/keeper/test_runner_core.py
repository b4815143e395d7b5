"""Which runner gets a task, which wait and which leave: the core alone."""

from __future__ import annotations

from typing import Any

import pytest

from grass.keeper.core import effects
from grass.keeper.core import keeper_events as events
from grass.keeper.core.keeper_core import KeeperCore
from grass.keeper.core.runners import HANDED_ON_S, IDLE_S
from grass.keeper.protocol import (
    ExitEntry,
    ForgetVerb,
    ForgottenEntry,
    ForkedEntry,
    SpawningEntry,
    StopVerb,
    SuspendVerb,
    TaskRun,
)

from .cores import asked, of, spawned, spec


def task(key: str = "k", *, keep: bool = True) -> TaskRun:
    return TaskRun(key, "/f", "", "", "/r", {}, keep=keep)


class Keeper:
    """A core with a machine that does at once what it is asked."""

    def __init__(self) -> None:
        self.core = KeeperCore(1, "boot")
        self.core.step(events.Restored([]), 0.0)
        self.core.step(events.Opened(7), 0.0)
        self.pids = iter(range(100, 200))
        self.now = 0.0
        self.hung_up: list[int] = []

    def step(self, event: events.KeeperEvent) -> list[effects.Effect]:
        wanted = self.core.step(event, self.now)
        self.hung_up += [effect.pid for effect in of(wanted, effects.HangUp)]
        return wanted

    def start(self, id: str, **fields: Any) -> int:
        """Start a task, and return the pid of its runner."""
        self.step(asked(spec(id, **{"task": task(), **fields})))
        return self.begin(id)

    def begin(self, id: str) -> int:
        self.core.starts.begin(id)
        pid = self.core.runners.chosen(id) or next(self.pids)
        self.step(spawned(id, pid))
        return pid

    def answer(self, id: str, pid: int, *, left: bool = False) -> list[effects.Effect]:
        wanted = self.step(events.Answered(pid, 0, None, 5))
        assert effects.Survey(id) in wanted
        return self.step(events.Surveyed(id, empty=not left, output_bytes=0))

    def run(self, id: str, **fields: Any) -> int:
        pid = self.start(id, **fields)
        exits = [one.entry for one in of(self.answer(id, pid), effects.Publish)]
        assert [(one.id, one.code) for one in exits] == [(id, 0)]
        return pid


@pytest.fixture
def keeper() -> Keeper:
    return Keeper()


def test_an_idle_runner_of_the_key_is_taken_and_recorded_with_its_pid(
    keeper: Keeper,
) -> None:
    pid = keeper.run("a")
    other = keeper.start("b", task=task("other"))
    keeper.step(asked(spec("c", task=task())))
    entries = keeper.core.starts.begin("c")
    assert entries == [
        SpawningEntry("c", "/o", None, 15.0, None, None, False, {}, runner=True),
        ForkedEntry("c", pid, 5),
    ]
    assert keeper.core.runners.chosen("c") == pid != other


def test_a_runner_has_one_attempt_at_a_time(keeper: Keeper) -> None:
    first = keeper.start("a")
    assert keeper.start("b") != first


def test_a_runner_that_is_gone_is_not_taken(keeper: Keeper) -> None:
    pid = keeper.run("a")
    keeper.step(events.ChildEnded(pid, 9, None, 6))
    assert keeper.start("b") != pid


def test_a_runner_whose_attempt_could_not_begin_is_idle_again(keeper: Keeper) -> None:
    pid = keeper.run("a")
    keeper.step(asked(spec("b", task=task())))
    keeper.core.starts.begin("b")
    keeper.step(events.SpawnFailed("b", "no output", 6))
    start = spec("c", task=task())
    keeper.step(asked(start))
    keeper.core.starts.begin("c")
    keeper.core.starts.postpone(start, 0.0)
    keeper.core.starts.begin("c")
    keeper.step(events.CannotSpawn(start, "no space", 6, "/folder"))
    assert keeper.begin("c") == pid


def test_idle_runners_leave_after_a_while(keeper: Keeper) -> None:
    first = keeper.run("a")
    keeper.now = 1.0
    second = keeper.run("b", task=task("other"))
    keeper.now = IDLE_S
    keeper.step(events.TimerTick())
    assert keeper.hung_up == [first]
    keeper.now = IDLE_S + 1.0
    assert keeper.core.timers.next_due() == keeper.now
    keeper.step(events.TimerTick())
    assert keeper.hung_up == [first, second]
    assert keeper.start("c") not in (first, second)


def test_of_too_many_idle_runners_the_first_leaves(keeper: Keeper) -> None:
    keeper.core.runners.most_idle = 2
    pids = [keeper.run(id, task=task(id)) for id in "abc"]
    assert keeper.hung_up == pids[:1]


def test_idle_runners_leave_a_machine_that_is_short(keeper: Keeper) -> None:
    pid = keeper.run("a")
    start = spec("b")
    keeper.step(asked(start))
    keeper.core.starts.begin("b")
    keeper.step(events.CannotSpawn(start, "not enough memory", 6))
    assert keeper.hung_up == [pid]


@pytest.mark.parametrize("verb", [StopVerb("a"), StopVerb("a", grace=0.0)])
def test_a_stop_hangs_up_before_it_signals(keeper: Keeper, verb: StopVerb) -> None:
    pid = keeper.start("a")
    kinds = [type(one) for one in keeper.step(asked(verb))]
    ends = (effects.SignalProcesses, effects.KillProcesses)
    assert keeper.hung_up == [pid]
    assert kinds.index(effects.HangUp) < min(
        place for place, kind in enumerate(kinds) if kind in ends
    )
    # It exits with the code of its task, as any process.
    keeper.step(events.ChildEnded(pid, 3 << 8, None, 6))
    told = keeper.step(events.Surveyed("a", empty=True, output_bytes=0))
    [exited] = [one.entry for one in of(told, effects.Publish)]
    assert isinstance(exited, ExitEntry)
    assert (exited.code, exited.reason) == (3, "cancelled")


def test_what_is_left_is_ended_together_with_the_runner(keeper: Keeper) -> None:
    pid = keeper.start("a")
    wanted = keeper.answer("a", pid, left=True)
    assert keeper.hung_up == [pid]
    assert not of(wanted, effects.Publish)
    assert of(wanted, effects.SignalProcesses)
    [survey] = of(keeper.step(events.ChildEnded(pid, 0, None, 6)), effects.Survey)
    assert survey.id == "a"


def test_a_runner_that_answers_while_it_is_suspended_is_not_kept(
    keeper: Keeper,
) -> None:
    pid = keeper.start("a")
    keeper.step(asked(SuspendVerb("a")))
    keeper.step(events.Answered(pid, 0, None, 5))
    assert keeper.hung_up == [pid]


def test_a_runner_that_may_not_wait_goes_to_a_follower_or_leaves(
    keeper: Keeper,
) -> None:
    short = task(keep=False)
    pid = keeper.start("a", task=short)
    keeper.step(asked(spec("b", task=short, after="a")))
    keeper.answer("a", pid)
    assert keeper.begin("b") == pid
    keeper.step(events.Answered(pid, 0, None, 5))
    assert keeper.hung_up == [pid]


def test_one_that_may_not_wait_leaves_when_its_follower_does_not_come(
    keeper: Keeper,
) -> None:
    short = task(keep=False)
    pid = keeper.start("a", task=short)
    keeper.step(asked(spec("b", task=short, after="a")))
    keeper.answer("a", pid)
    keeper.step(asked(StopVerb("b")))
    keeper.now = HANDED_ON_S
    keeper.step(events.TimerTick())
    assert keeper.hung_up == [pid]


def test_a_runner_in_whose_cgroup_memory_was_short_is_not_kept(keeper: Keeper) -> None:
    pid = keeper.start("a")
    keeper.step(events.Answered(pid, 1 << 8, None, 5))
    told = keeper.step(events.Surveyed("a", True, 0, oom_killed=True))
    assert keeper.hung_up == [pid]
    assert of(told, effects.Survey)
    assert not of(told, effects.Publish)


def test_no_runner_is_kept_while_exits_cannot_be_recorded(keeper: Keeper) -> None:
    # A successor would take it for one that still runs its task.
    first = keeper.start("a")
    second = keeper.start("b")
    keeper.answer("a", first)
    keeper.step(events.Flushed("no space left on device"))
    assert keeper.hung_up == [first]
    keeper.step(events.Answered(second, 0, None, 5))
    assert keeper.hung_up == [first, second]
    keeper.step(events.Flushed(None))
    third = keeper.start("c")
    keeper.answer("c", third)
    assert keeper.hung_up == [first, second]


def test_an_exit_that_is_stored_before_a_found_runner_leaves_is_forgotten() -> None:
    before = Keeper()
    before.start("a")
    entries = before.core.snapshot()
    core = KeeperCore(1, "boot")
    core.step(events.Restored(entries), 1.0)
    core.step(events.Opened(7), 1.0)
    core.step(events.Spawned("a", 100, 5, 1_000_000, 0, 0), 1.0)
    core.step(asked(ForgetVerb(["a"])), 1.0)
    core.step(events.AdoptedEnded("a", 0, 2_000_000), 2.0)
    wanted = core.step(events.Surveyed("a", empty=True, output_bytes=0), 2.0)
    assert effects.Record(ForgottenEntry(["a"])) in wanted
    assert core.empty
