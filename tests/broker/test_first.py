"""Jobs that are put first: a priority above all others that wait in their queue."""

from collections.abc import Callable

import pytest
from tests.support.brokerage import ME, Brokerage, outcome_of

from grass.broker.core.calls import Edit, SetPaused
from grass.broker.core.jobs import bulk_calls
from grass.errors import Refused
from grass.model.jobs.commands import LARGEST_PRIORITY
from grass.model.jobs.spec import JobPatch

Meanwhile = Callable[[Brokerage], None]


def waiting(broker: Brokerage, *priorities: int, queue: str = "default") -> list[int]:
    """Enqueue jobs that wait, one for each priority."""
    broker.pause()
    return [broker.enqueue(queue=queue, priority=priority) for priority in priorities]


def order(broker: Brokerage, queue: str = "default") -> list[int]:
    return broker.state.scheduler.first(99, queue)


def priorities(broker: Brokerage, jobs: list[int]) -> list[int]:
    return [broker.job(job).job.priority for job in jobs]


def test_the_job_goes_before_all_others_of_its_queue(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    jobs = waiting(broker, 0, 7, 0, 3)
    assert broker.edit(jobs[2], first=True).jobs == [jobs[2]]
    meanwhile(broker)
    assert order(broker) == [jobs[2], jobs[1], jobs[3], jobs[0]]
    assert priorities(broker, jobs) == [0, 7, 8, 3]


def test_the_journal_says_that_the_priority_was_changed(broker: Brokerage) -> None:
    jobs = waiting(broker, 0, 0)
    broker.edit(jobs[1], first=True, time_limit_s=5.0)
    events = broker.store.events(0, 99, None, ("edited",))
    [data] = [one.data for one in events]
    assert data == '{"changed":["priority","time_limit_s"]}'


def test_several_keep_the_order_that_they_have(broker: Brokerage) -> None:
    jobs = waiting(broker, 9, 0, 2, 0, 9)
    broker.edit(jobs[3], jobs[2], jobs[1], first=True)
    assert order(broker) == [jobs[2], jobs[1], jobs[3], jobs[0], jobs[4]]
    assert priorities(broker, jobs) == [9, 10, 11, 10, 9]


@pytest.mark.parametrize("again", [1, 2, 3])
def test_a_job_that_is_first_keeps_its_priority(broker: Brokerage, again: int) -> None:
    jobs = waiting(broker, 0, 5)
    for _ in range(again):
        broker.edit(jobs[1], first=True)
    assert priorities(broker, jobs) == [0, 5]


def test_the_last_one_that_was_put_first_is_first(broker: Brokerage) -> None:
    jobs = waiting(broker, 0, 0, 0)
    broker.edit(jobs[1], first=True)
    broker.edit(jobs[2], first=True)
    assert order(broker) == [jobs[2], jobs[1], jobs[0]]


def test_other_queues_and_running_jobs_do_not_count(broker: Brokerage) -> None:
    broker.create_queue("q", "{cpu:2}")
    running = broker.enqueue(require="{cpu:2}", priority=50)
    assert broker.running() == [running]
    waiting(broker, 90, queue="q")
    jobs = waiting(broker, 0, 0)
    broker.edit(jobs[1], first=True)
    assert priorities(broker, jobs) == [0, 1]


def test_a_job_is_first_in_the_queue_that_it_moves_to(broker: Brokerage) -> None:
    broker.create_queue("q", "{cpu:2}")
    there = waiting(broker, 4, queue="q")
    jobs = waiting(broker, 99, 0)
    broker.edit(jobs[1], first=True, queue="q")
    assert order(broker, "q") == [jobs[1], *there]
    assert priorities(broker, jobs) == [99, 5]


def test_held_jobs_count_and_can_be_put_first(broker: Brokerage) -> None:
    jobs = waiting(broker, 0, 6, 0)
    broker.hold(*jobs)
    broker.edit(jobs[2], first=True)
    broker.release(*jobs)
    assert order(broker) == [jobs[2], jobs[1], jobs[0]]


def test_members_of_an_array_go_together_or_alone(broker: Brokerage) -> None:
    broker.pause()
    other = broker.enqueue()
    members = broker.array(3)
    broker.edit(*members, first=True)
    assert order(broker) == [*members, other]
    broker.edit(members[2], first=True)
    assert order(broker) == [members[2], *members[:2], other]


def test_there_is_a_highest_priority(broker: Brokerage) -> None:
    jobs = waiting(broker, LARGEST_PRIORITY, 0, -1)
    said = broker.refused(Refused, lambda: broker.edit(*jobs[1:], first=True))
    assert said.startswith(f"no priority is left above the 1000000 of job {jobs[0]}")
    assert priorities(broker, jobs) == [LARGEST_PRIORITY, 0, -1]
    broker.edit(jobs[0], first=True)


def test_a_long_queue_is_read_in_slices(
    broker: Brokerage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_calls, "LOOKED_AT", 2)
    jobs = waiting(broker, 0, 0, 0, 0, 3, 0)
    reply = broker.step(Edit(ME, [jobs[5]], JobPatch(), True))
    assert reply.reply is None
    broker.step(SetPaused(ME, True))  # other calls go on between
    while reply.reply is None:
        broker.flush()
    assert outcome_of(reply).jobs == [jobs[5]]
    assert order(broker)[:2] == [jobs[5], jobs[4]]
