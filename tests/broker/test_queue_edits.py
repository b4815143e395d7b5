"""Changing queues: what creating one refuses or says, a change of it does too."""

from typing import Any

import pytest
from tests.support.brokerage import ME, Brokerage
from tests.support.building import WORKER

from grass.broker.core.calls import CreateQueue, Done, EditQueue
from grass.errors import NeverFits, NotFound, Refused, UsageError
from grass.link.messages import KnownUnits
from grass.model.amount_text import WHOLE
from grass.model.queue import QueuePatch, View
from grass.model.resources import capacity_from, request_from


@pytest.fixture
def two(broker: Brokerage) -> Brokerage:
    """A worker `desk` with two cores, and a `farm` with four."""
    broker.join("farm", "{cpu:4}")
    return broker


def edit(
    broker: Brokerage, queue: str = "q", worker: str = WORKER, **changes: Any
) -> Done:
    done: Done = broker.call(EditQueue(ME, queue, worker, QueuePatch(**changes)))
    return done


def on_farm(broker: Brokerage, *prefix: str, capacity: str = "{cpu:4}") -> None:
    """Give the queue a part of the second worker."""
    cwd = "/farm" if prefix else None
    patch = QueuePatch(capacity=capacity_from(capacity), prefix=prefix, cwd=cwd)
    broker.call(CreateQueue(ME, "q", "farm", patch))


def view_of(broker: Brokerage, worker: str = WORKER) -> View:
    return broker.state.queues["q"].views[worker]


# One command everywhere, or nowhere.


def test_a_command_cannot_be_given_to_one_of_several_views(two: Brokerage) -> None:
    two.create_queue("q", "{cpu:2}")
    on_farm(two)
    with pytest.raises(Refused, match="queue `q` has no command on farm"):
        edit(two, prefix=("echo",))
    assert view_of(two).prefix == ()


def test_a_command_cannot_be_taken_from_one_of_several_views(two: Brokerage) -> None:
    two.create_queue("q", "{cpu:2}", "echo")
    on_farm(two, "echo")
    with pytest.raises(Refused, match="queue `q` has a command on farm"):
        edit(two, prefix=())
    assert view_of(two).prefix == ("echo",)


def test_each_view_may_have_another_command(two: Brokerage) -> None:
    two.create_queue("q", "{cpu:2}", "echo")
    on_farm(two, "echo")
    edit(two, prefix=("/opt/echo",))
    assert view_of(two).prefix == ("/opt/echo",)
    assert view_of(two, "farm").prefix == ("echo",)


def test_the_only_view_may_gain_and_lose_its_command(two: Brokerage) -> None:
    two.create_queue("q", "{cpu:2}")
    edit(two, prefix=("echo",), cwd="/desk")
    assert (view_of(two).prefix, view_of(two).cwd) == (("echo",), "/desk")
    edit(two, prefix=())
    assert view_of(two).prefix == ()


# A directory goes with a command.


def test_the_directory_goes_with_the_command(broker: Brokerage) -> None:
    broker.create_queue("q", "{cpu:2}", "echo", cwd="/desk")
    assert not edit(broker, prefix=()).warnings
    assert view_of(broker).cwd is None


LEFT_OUT = "queue `q` has no command, so the directory /x is left out"


def test_a_directory_without_a_command_is_left_out_and_said(broker: Brokerage) -> None:
    assert broker.create_queue("q", "{cpu:2}", cwd="/x").warnings == [LEFT_OUT]
    assert view_of(broker).cwd is None
    done = edit(broker, cwd="/x")
    assert (done.changed, done.warnings) == (False, [LEFT_OUT])
    assert view_of(broker).cwd is None
    done = edit(broker, cwd="/x", max_running=3)
    assert (done.changed, done.warnings) == (True, [LEFT_OUT])
    assert view_of(broker).cwd is None


# Units.


def test_declaring_more_than_was_found_is_said_of_a_change_too(
    broker: Brokerage,
) -> None:
    broker.create_queue("q", "{gpu:1}")
    done = edit(broker, capacity=capacity_from("{gpu:4}"))
    assert done.warnings == ["declared, not found: 3 gpu (0 found)"]
    assert not edit(broker, capacity=capacity_from("{gpu:2}")).warnings
    assert not edit(broker, max_running=1).warnings


def test_a_change_wants_no_more_of_a_unit_than_there_is(broker: Brokerage) -> None:
    broker.create_queue("q", "{cpu:2}")
    with pytest.raises(UsageError, match="wants 9 of cpu 0, which has 1"):
        edit(broker, capacity=capacity_from("{cpu:[9]}"), max_running=3)
    assert broker.state.queues["q"].max_running is None


def test_a_unit_that_is_declared_no_more_is_not_drained_when_it_is_again(
    broker: Brokerage,
) -> None:
    broker.create_queue("q", "{printer:2}")
    broker.drain("printer", "1")
    edit(broker, capacity=capacity_from("{printer:1}"))
    assert broker.said(KnownUnits)[-1].capacity["printer"] == {"0": WHOLE}
    assert not broker.state.workers[WORKER].drained
    edit(broker, capacity=capacity_from("{printer:2}"))
    jobs = [broker.enqueue(queue="q", require="{printer:1}") for _ in range(2)]
    assert broker.running() == jobs


# The default request.


def test_units_that_the_default_request_needs_cannot_be_taken_away(
    broker: Brokerage,
) -> None:
    wanted = request_from("{slot:2}")
    broker.create_queue("q", "{slot:2}", default_request=wanted)
    with pytest.raises(NeverFits, match="asks slot 2, the queue has 1"):
        edit(broker, capacity=capacity_from("{slot:1}"))
    narrowed = capacity_from("{slot:1}")
    edit(broker, capacity=narrowed, default_request=request_from("{slot:1}"))
    assert view_of(broker).capacity == narrowed


def test_a_default_request_may_be_met_by_any_worker_of_the_queue(
    two: Brokerage,
) -> None:
    two.create_queue("q", "{cpu:2}")
    on_farm(two)
    edit(two, default_request=request_from("{cpu:4}"))
    with pytest.raises(NeverFits, match="asks cpu 5, the queue has 4"):
        edit(two, default_request=request_from("{cpu:5}"))
    edit(two, "default", default_request=request_from("{cpu:4}"))
    with pytest.raises(NeverFits, match="asks cpu 5, the queue has 4"):
        edit(two, "default", default_request=request_from("{cpu:5}"))


# Whose view it is.


def test_a_machine_without_a_part_in_a_queue_gets_none_by_a_change(
    two: Brokerage,
) -> None:
    two.create_queue("q", "{cpu:2}")
    with pytest.raises(NotFound, match="this machine has no part in queue `q`"):
        edit(two, worker="farm", env=(("A", "1"),))
    assert list(two.state.queues["q"].views) == [WORKER]


def test_what_belongs_to_the_whole_queue_can_be_changed_from_anywhere(
    two: Brokerage,
) -> None:
    two.create_queue("q", "{cpu:2}")
    assert edit(two, worker="farm", max_running=3).changed
    assert edit(two, worker="nobody", max_fails=2).changed
    queue = two.state.queues["q"]
    assert (queue.max_running, queue.max_fails) == (3, 2)
    with pytest.raises(NotFound, match="this machine has no part in queue `q`"):
        edit(two, worker="nobody", max_fails=4, env=())
    assert queue.max_fails == 2
    assert list(queue.views) == [WORKER]
