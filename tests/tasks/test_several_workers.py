"""Units of several machines: each request is met by one, and they come and go."""

import pytest

from grass.errors import NeverFits
from grass.resource import Cores, Kind, Memory, Node, Resource, capacity_of
from grass.tasks.core.task_units import HERE, TaskStart, TaskUnits
from tests.tasks.shared import Seats

TWO = capacity_of(Node(N=2, M=4))
FOUR = capacity_of(Node(N=4, M=4))


def units(own: Resource | None = None) -> TaskUnits:
    return TaskUnits(TWO) if own is None else TaskUnits(TWO, own)


def submitted(here: TaskUnits, res: Resource, *tasks: int) -> list[TaskStart]:
    here.submit(list(tasks), here.ask(res))
    return here.decide(0.0)


def test_a_request_is_met_by_one_machine() -> None:
    here = units()
    here.add_worker("node1", TWO)
    starts = submitted(here, Cores(2) & Memory(1), 1, 2, 3)
    assert sorted(start.worker for start in starts) == [HERE, "node1"]
    with pytest.raises(NeverFits, match=r"cpu 3 .* cpu 2, ram 4G here; .* on node1"):
        here.ask(Cores(3))
    follower = here.follow(starts[0].task, 1)
    assert follower == 3
    ended = here.ended(starts[0].task)
    assert ended is not None
    assert (ended.task, ended.worker) == (3, starts[0].worker)
    here.check()


def test_a_machine_that_is_still_to_come_is_counted_on() -> None:
    here = units()
    here.expect_worker("node1", FOUR)
    assert submitted(here, Cores(4), 1) == []
    here.add_worker("node1", FOUR)
    (start,) = here.decide(0.0)
    assert start.worker == "node1"
    here.check()


def test_nothing_more_is_placed_on_a_machine_that_is_gone() -> None:
    here = units()
    here.add_worker("node1", FOUR)
    (start,) = submitted(here, Cores(4), 1)
    asked = here.ask(Cores(4))
    here.submit([2], asked)
    here.remove_worker("node1")
    assert not here.can_be_met(asked)
    assert here.follow(1, 1) is None
    assert here.ended(start.task) is None
    assert here.decide(0.0) == []
    here.removed(2)
    here.check()


def test_parts_of_ones_own_are_had_in_this_program_alone() -> None:
    here = units(Seats(2))
    here.add_worker("node1", FOUR)
    starts = submitted(here, Cores(1) & Seats(1), 1, 2)
    assert [start.worker for start in starts] == [HERE, HERE]
    with pytest.raises(NeverFits, match="cpu 4"):
        here.ask(Cores(4) & Seats(1))
    assert here.ask(Cores(4)).request
    with pytest.raises(NeverFits, match="printer"):
        here.ask(Kind("printer", 1))
