"""Creating, deleting and pausing queues; views that share units."""

from collections.abc import Callable

import pytest
from tests.support.brokerage import ME, Brokerage
from tests.support.building import WORKER

from grass.broker.core.calls import CreateQueue, DeleteQueue
from grass.errors import NotFound, Refused, UsageError
from grass.link.messages import KnownUnits, Start
from grass.model.amount_text import WHOLE
from grass.model.jobs.lifecycle import JobState
from grass.model.queue import QueuePatch
from grass.model.resources import capacity_from

ONE_CORE = capacity_from("{cpu:1}")

MakeBroker = Callable[[str], Brokerage]


def test_the_default_queue_always_exists_and_stays(broker: Brokerage) -> None:
    assert list(broker.state.queues) == ["default"]
    with pytest.raises(Refused, match="always exists"):
        broker.create_queue("default", "{cpu:1}")
    with pytest.raises(Refused, match="cannot be deleted"):
        broker.delete_queue("default")


def test_the_same_queue_again_is_fine_and_a_different_one_is_not(
    broker: Brokerage,
) -> None:
    assert broker.create_queue("q1", "{cpu:1}", "python").changed
    assert not broker.create_queue("q1", "{cpu:1}", "python").changed
    with pytest.raises(Refused, match="another command"):
        broker.create_queue("q1", "{cpu:1}", "bash")
    with pytest.raises(Refused, match="another capacity and limit on running jobs"):
        broker.create_queue("q1", "{cpu:2}", "python", max_running=3)


def test_a_command_that_no_kernel_would_start_is_refused(broker: Brokerage) -> None:
    for prefix, env in (("x" * 140_000, ()), ("x", (("BIG", "y" * 140_000),))):
        with pytest.raises(UsageError, match="is too long"):
            broker.create_queue("q1", "{cpu:1}", prefix, env=env)
    assert "q1" not in broker.state.queues


@pytest.mark.parametrize("name", ["", "a b", "../x", "1q"])
def test_a_bad_name_is_refused(broker: Brokerage, name: str) -> None:
    with pytest.raises(UsageError):
        broker.create_queue(name, "{}")


def test_a_queue_that_does_not_exist_is_not_found_and_the_others_named(
    broker: Brokerage,
) -> None:
    broker.create_queue("q1", "{cpu:1}")
    with pytest.raises(NotFound) as refused:
        broker.delete_queue("q2")
    assert "default, q1" in refused.value.hint


def test_a_declared_unit_lives_as_long_as_its_queue(broker: Brokerage) -> None:
    done = broker.create_queue("print", "{printer:1}")
    assert not done.warnings
    assert broker.said(KnownUnits)[-1].capacity["printer"] == {"0": WHOLE}
    job = broker.enqueue(queue="print", require="{printer:1}")
    assert broker.started_jobs() == [job]
    with pytest.raises(Refused, match="1 unfinished job"):
        broker.delete_queue("print")
    broker.exit(job)
    broker.delete_queue("print")
    assert "printer" not in broker.said(KnownUnits)[-1].capacity


def test_declaring_more_than_was_found_is_said_in_one_line(broker: Brokerage) -> None:
    (warning,) = broker.create_queue("q1", "{gpu:4}").warnings
    assert warning == "declared, not found: 4 gpu (0 found)"


def test_a_view_larger_than_a_known_unit_is_an_error(broker_of: MakeBroker) -> None:
    broker = broker_of("{cpu:2, ram:[16]}")
    with pytest.raises(UsageError, match="wants 32G of ram 0, which has 16G"):
        broker.create_queue("q1", "{ram:[32]}")
    assert "q1" not in broker.state.queues
    broker.create_queue("q1", "{ram:[8]}")


def test_two_queues_on_one_unit_never_sell_it_twice(broker_of: MakeBroker) -> None:
    broker = broker_of("{cpu:4, gpu:1}")
    broker.create_queue("a", "{gpu:{'0':1}}")
    broker.create_queue("b", "{gpu:{'0':1}}")
    first = broker.enqueue(queue="a", require="{gpu:0.6}")
    second = broker.enqueue(queue="b", require="{gpu:0.6}")
    small = broker.enqueue(queue="b", require="{gpu:0.4}")
    assert set(broker.state.attempts) == {first, small}
    broker.exit(first)
    assert broker.started_jobs() == [second]


def test_a_view_limits_the_kinds_it_names(broker_of: MakeBroker) -> None:
    broker = broker_of("{cpu:4, gpu:2}")
    broker.create_queue("half", "{gpu:{'1':0.5}}")
    first = broker.enqueue(queue="half", require="{gpu:0.5, cpu:2}")
    second = broker.enqueue(queue="half", require="{gpu:0.5}")
    assert set(broker.state.attempts) == {first}
    assert broker.state.attempts[first].allocation["gpu"] == {"1": 5000}
    assert broker.job_state(second) is JobState.QUEUED


def test_a_queues_limit_on_running_jobs_holds(broker: Brokerage) -> None:
    broker.create_queue("one", "{slot:9}", max_running=1)
    first = broker.enqueue(queue="one", require="{slot:1}")
    second = broker.enqueue(queue="one", require="{slot:1}")
    assert set(broker.state.attempts) == {first}
    broker.exit(first)
    assert set(broker.state.attempts) == {second}


def test_a_paused_queue_starts_nothing_and_others_go_on(broker: Brokerage) -> None:
    broker.create_queue("q1", "{cpu:2}")
    assert broker.pause("q1").changed
    assert not broker.pause("q1").changed
    waiting = broker.enqueue(queue="q1")
    other = broker.enqueue()
    assert set(broker.state.attempts) == {other}
    broker.restart()
    broker.hello(running=[broker.report(other)])
    assert broker.job_state(waiting) is JobState.QUEUED
    broker.resume("q1")
    assert broker.started_jobs() == [waiting]


def test_pausing_everything_outlasts_a_restart(broker: Brokerage) -> None:
    broker.pause()
    job = broker.enqueue()
    broker.restart()
    broker.hello()
    assert not broker.started_jobs()
    broker.resume()
    assert broker.started_jobs() == [job]


def test_a_queue_made_anew_in_the_batch_that_deleted_it_is_the_new_one(
    broker: Brokerage,
) -> None:
    broker.create_queue("q1", "{cpu:1}", "old")
    broker.step(DeleteQueue(ME, "q1", WORKER))
    broker.step(
        CreateQueue(ME, "q1", WORKER, QueuePatch(capacity=ONE_CORE, prefix=("new",)))
    )
    broker.flush()
    broker.restart()
    assert broker.state.queues["q1"].prefix == ("new",)


def test_a_queue_deleted_in_the_batch_that_made_it_is_gone(broker: Brokerage) -> None:
    broker.step(CreateQueue(ME, "q1", WORKER, QueuePatch(capacity=ONE_CORE)))
    broker.step(DeleteQueue(ME, "q1", WORKER))
    broker.flush()
    broker.restart()
    assert list(broker.state.queues) == ["default"]


def test_a_queue_keeps_the_environment_it_was_created_with(broker: Brokerage) -> None:
    broker.create_queue("q1", "{cpu:1}", env=(("A", "1"),))
    broker.enqueue(queue="q1")
    assert broker.said(Start)[0].queue_env == (("A", "1"),)
