"""Jobs that are put right before another one that waits."""

import random

import pytest
from tests.support.brokerage import Brokerage

from grass.errors import Refused
from grass.model.jobs.commands import LARGEST_PRIORITY


def waiting(broker: Brokerage, *priorities: int, queue: str = "default") -> list[int]:
    """Enqueue jobs that wait, one for each priority."""
    broker.pause()
    return [broker.enqueue(queue=queue, priority=priority) for priority in priorities]


def order(broker: Brokerage, queue: str = "default") -> list[int]:
    return broker.state.scheduler.first(99, queue)


def priorities(broker: Brokerage, jobs: list[int]) -> list[int]:
    return [broker.job(job).job.priority for job in jobs]


@pytest.mark.parametrize(
    ("given", "moved", "before", "wanted"),
    [
        ((0, 0, 0), 2, 0, [0, 0, 1]),  # To the very beginning.
        ((0, 0, 0), 2, 1, [2, 0, 1]),  # Only where those ahead make room.
        ((0, 0, 0), 0, 2, [1, 2, 0]),  # Down.
        ((5, 0, 0), 2, 1, [5, 0, 1]),  # Room was left between two priorities.
        ((5, 3, 3), 2, 1, [5, 3, 4]),
        ((3, 3, 0, 3), 2, 3, [3, 3, 3, 3]),
        ((0, 9, 0), 0, 2, [0, 9, 0]),  # It is there already.
    ],
)
def test_a_job_gets_a_priority_between_its_neighbours(
    broker: Brokerage,
    given: tuple[int, ...],
    moved: int,
    before: int,
    wanted: list[int],
) -> None:
    jobs = waiting(broker, *given)
    done = broker.edit(jobs[moved], before=jobs[before])
    assert done.jobs == [jobs[moved]]
    found = order(broker)
    assert found.index(jobs[moved]) + 1 == found.index(jobs[before])
    assert priorities(broker, jobs) == wanted


@pytest.mark.parametrize("seed", range(40))
def test_all_others_keep_their_order(broker: Brokerage, seed: int) -> None:
    chance = random.Random(seed)
    jobs = waiting(broker, *(chance.choice((-1, 0, 0, 0, 1, 2, 7)) for _ in range(9)))
    for _ in range(4):
        *moved, before = chance.sample(jobs, chance.choice((2, 2, 3)))
        left = [one for one in order(broker) if one not in moved]
        place = left.index(before)
        wanted = [*left[:place], *sorted(moved), *left[place:]]
        broker.edit(*moved, before=before)
        assert order(broker) == wanted


def test_a_job_that_does_not_wait_there_is_refused(broker: Brokerage) -> None:
    running = broker.enqueue(require="{cpu:2}")
    assert broker.running() == [running]
    broker.create_queue("q", "{cpu:2}")
    (there,) = waiting(broker, 0, queue="q")
    (here,) = waiting(broker, 0)
    for other, why in (
        (running, "does not wait"),
        (99, "does not wait"),
        (here, "before itself"),
        (there, "waits in queue `default`"),
    ):
        with pytest.raises(Refused, match=why):
            broker.edit(here, before=other)


def test_where_no_priority_is_left_nothing_is_changed(broker: Brokerage) -> None:
    jobs = waiting(broker, LARGEST_PRIORITY, LARGEST_PRIORITY, 0)
    with pytest.raises(Refused, match="no priority is left"):
        broker.edit(jobs[2], before=jobs[1])
    assert order(broker) == jobs
