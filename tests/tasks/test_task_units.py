"""Which task starts on which units: refused, in order, handed over, given back."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from grass.errors import NeverFits
from grass.resource import ZERO, Cores, Gpu, Kind, Memory, Resource, capacity_of, given
from grass.tasks.core.task_units import TaskStart, TaskUnits
from tests.tasks.shared import Seats


def units(own: Resource = ZERO) -> TaskUnits:
    return TaskUnits(capacity_of(Cores(4) & Memory(8) & Kind("printer", 1)), own)


def started(starts: list[TaskStart]) -> list[int]:
    return [start.task for start in starts]


def test_a_task_names_the_cores_that_it_was_given() -> None:
    here = units()
    here.submit([1], here.ask(Cores(3) & Memory(2)))
    (start,) = here.decide(0.0)
    assert repr(given(start.allocation)) == "CPU([0, 1, 2]) & Memory(2)"


def test_what_can_never_be_met_is_refused_at_once() -> None:
    here = units()
    with pytest.raises(NeverFits, match=r"cpu 5 is more .* has: cpu 4, printer"):
        here.ask(Cores(5))
    with pytest.raises(NeverFits, match="gpu 1 is more"):
        here.ask(Gpu(1))
    with pytest.raises(NeverFits, match=r"Seats\(1\) is more .*`rpw`"):
        here.ask(Seats(1))
    with pytest.raises(NeverFits, match=r"Seats\(3\) is more .*: Seats\(2\)"):
        units(Seats(2)).ask(Seats(3))


def test_tasks_wait_until_another_ends() -> None:
    here = units()
    here.submit([1, 2, 3], here.ask(Cores(2)))
    assert started(here.decide(0.0)) == [1, 2]
    assert here.waiting() == 1
    here.ended(1)
    assert started(here.decide(0.0)) == [3]


def test_one_that_follows_takes_over_the_same_cores() -> None:
    here = units()
    here.submit([1, 2, 3], here.ask(Cores(4)))
    (first,) = here.decide(0.0)
    assert here.follow(1, at_most=1) == 2
    assert here.follow(1, at_most=1) is None
    follower = here.ended(1)
    assert follower is not None
    assert (follower.task, follower.allocation) == (2, first.allocation)
    assert here.decide(0.0) == []


def test_one_that_is_recalled_waits_in_its_old_place() -> None:
    here = units()
    asked = here.ask(Cores(4))
    here.submit([1, 2, 3], asked)
    here.decide(0.0)
    assert here.follow(1, at_most=1) == 2
    here.recall(2, asked)
    here.ended(1)
    assert started(here.decide(0.0)) == [2]


def test_own_parts_are_taken_in_order_and_given_back() -> None:
    own = Seats(3)
    here = units(own)
    two = here.ask(Cores(1) & Seats(2))
    here.submit([1, 2], two)
    here.submit([3], here.ask(Cores(1) & Seats(1)))
    starts = here.decide(0.0)
    assert started(starts) == [1]
    assert repr(starts[0].own) == "Seats(2)"
    assert own.count == 1
    here.ended(1)
    assert started(here.decide(0.0)) == [2, 3]
    here.removed(2)
    here.removed(3)
    assert own.count == 3


def test_a_task_that_is_forgotten_while_it_waits_gives_its_own_parts_back() -> None:
    own = Seats(1)
    here = units(own)
    here.submit([1], here.ask(Cores(4)))
    here.submit([2], here.ask(Cores(1) & Seats(1)))
    assert started(here.decide(0.0)) == [1]
    assert own.count == 0
    here.removed(2)
    assert own.count == 1


ASKED = st.sampled_from([Cores(1), Cores(3), Memory(4), Cores(1) & Seats(1), Seats(2)])


class Histories(RuleBasedStateMachine):
    """Tasks come, start, follow, are recalled, end and are forgotten in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.own = Seats(2)
        self.units = TaskUnits(capacity_of(Cores(4) & Memory(8)), self.own)
        self.asked: dict[int, Resource] = {}
        self.running: dict[int, TaskStart] = {}
        self.followers: dict[int, int] = {}

    @rule(res=ASKED, count=st.integers(1, 3))
    def submit(self, res: Resource, count: int) -> None:
        first = len(self.asked) + 1
        tasks = list(range(first, first + count))
        self.asked.update(dict.fromkeys(tasks, res))
        self.units.submit(tasks, self.units.ask(res))

    @rule()
    def decide(self) -> None:
        for start in self.units.decide(0.0):
            self.running[start.task] = start

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def follow(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(sorted(self.running)))
        follower = self.units.follow(task, at_most=1)
        if follower is not None:
            self.followers[task] = follower

    @precondition(lambda self: self.followers)
    @rule(data=st.data())
    def recall(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(sorted(self.followers)))
        follower = self.followers.pop(task)
        self.units.recall(follower, self.units.ask(self.asked[follower]))

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(sorted(self.running)))
        del self.running[task]
        follower = self.units.ended(task)
        assert (follower and follower.task) == self.followers.pop(task, None)
        if follower is not None:
            self.running[follower.task] = follower

    @invariant()
    def nothing_is_given_twice(self) -> None:
        self.units.check()
        cores = [
            set(start.allocation.get("cpu", ())) for start in self.running.values()
        ]
        assert len(set().union(*cores)) == sum(map(len, cores)) <= 4
        seats = [getattr(start.own, "count", 0) for start in self.running.values()]
        assert 0 <= self.own.count <= 2 - sum(seats)

    def teardown(self) -> None:
        for _ in range(2 * len(self.asked) + 1):
            for task in list(self.running):
                follower = self.units.ended(task)
                del self.running[task]
                if follower is not None:
                    self.running[follower.task] = follower
            self.decide()
        assert not self.running
        assert self.units.waiting() == 0
        assert self.own.count == 2


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=60, stateful_step_count=30)
