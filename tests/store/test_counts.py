"""Counts of jobs and of arrays, in every store, and reads of one commit."""

from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from tests.support.building import a_job, a_selection, a_spec

from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import ENDED, JobState
from grass.store.changes import Changes, Event
from grass.store.interface import ArrayTotals, JobFilter, Order, Store
from grass.store.sqlite.sqlite_store import SqliteStore

Reopen = Callable[[], Store]
QUEUED, RUNNING = JobState.QUEUED, JobState.RUNNING
SUCCEEDED, FAILED = JobState.SUCCEEDED, JobState.FAILED


def jobs() -> list[Job]:
    """Return two arrays, 2-5 and 7-8, and jobs of no array."""
    return [
        a_job(1, state=SUCCEEDED, finished_at=50, started_at=10),
        a_job(2, array=2, index=1, state=SUCCEEDED, started_at=20, finished_at=60),
        a_job(3, array=2, index=2, state=RUNNING, started_at=30),
        a_job(4, array=2, index=3, project="p"),
        a_job(5, array=2, index=4, priority=3),
        a_job(6, queue="q"),
        a_job(7, array=7, index=1, state=FAILED, started_at=40, finished_at=70),
        a_job(8, array=7, index=2, queue="q", priority=1),
        a_job(9, name="fit", owner="uid:7", priority=2),
    ]


@pytest.fixture
def filled(store: Store) -> Store:
    store.commit(Changes(specs={1: a_spec()}, jobs={job.id: job for job in jobs()}))
    return store


COUNTED: tuple[tuple[JobFilter, dict[JobState, int]], ...] = (
    (JobFilter(), {QUEUED: 5, RUNNING: 1, SUCCEEDED: 2, FAILED: 1}),
    (JobFilter(queue="q"), {QUEUED: 2}),
    (JobFilter(project="p"), {QUEUED: 1}),
    (JobFilter(owner="uid:7"), {QUEUED: 1}),
    (JobFilter(name="fit"), {QUEUED: 1}),
    (JobFilter((QUEUED, FAILED)), {QUEUED: 5, FAILED: 1}),
    (JobFilter(selection=a_selection("@p")), {QUEUED: 1}),
    (JobFilter(selection=a_selection("name~^f")), {QUEUED: 1}),
    (JobFilter(selection=a_selection("all")), {QUEUED: 5, RUNNING: 1}),
    (JobFilter(selection=a_selection("last")), {QUEUED: 1}),
    (JobFilter(selection=a_selection("1-3")), {RUNNING: 1, SUCCEEDED: 2}),
    (
        JobFilter((QUEUED,), selection=a_selection("1-6 @p")),
        {QUEUED: 1},
    ),
    (JobFilter(selection=a_selection("queue:q state:queued all")), {QUEUED: 2}),
    (JobFilter(selection=a_selection("queue:q state:failed")), {}),
    (JobFilter((QUEUED,), selection=a_selection("queue:default last")), {QUEUED: 1}),
)


def test_jobs_are_counted_by_any_filter(filled: Store) -> None:
    for wanted, counts in COUNTED:
        assert filled.counts(wanted) == counts, wanted
    assert filled.queue_counts() == {
        "default": {QUEUED: 3, RUNNING: 1, SUCCEEDED: 2, FAILED: 1},
        "q": {QUEUED: 2},
    }


def test_arrays_come_in_the_order_of_their_members(filled: Store) -> None:
    def arrays(*states: JobState, order: Order, **more: str) -> list[int]:
        return filled.arrays(JobFilter(states, order=order, **more), 10)  # type: ignore[arg-type]

    assert arrays(QUEUED, order=Order.NEXT) == [2, 7]
    assert arrays(QUEUED, order=Order.NEXT, project="p") == [2]
    assert arrays(QUEUED, order=Order.NEXT, queue="q") == [7]
    assert arrays(QUEUED, order=Order.NEXT, name="fit") == []
    assert arrays(*ENDED, order=Order.FINISHED) == [7, 2]
    assert arrays(SUCCEEDED, order=Order.FINISHED) == [2]
    assert filled.arrays(JobFilter((QUEUED,), order=Order.NEXT), 1) == [2]


def test_pages_are_read_in_the_order_of_starting_and_of_ending(filled: Store) -> None:
    def page(*states: JobState, order: Order, array: int | None = None) -> list[int]:
        found = filled.jobs(JobFilter(states, order=order, array=array), 10)
        return [one.job.id for one in found]

    assert page(QUEUED, order=Order.NEXT) == [5, 9, 8, 4, 6]
    assert page(QUEUED, order=Order.NEXT, array=0) == [9, 6]
    assert page(QUEUED, order=Order.NEXT, array=2) == [5, 4]
    assert page(*ENDED, order=Order.FINISHED) == [7, 2, 1]
    assert page(*ENDED, order=Order.FINISHED, array=0) == [1]
    assert page(*ENDED, order=Order.FINISHED, array=7) == [7]


def test_an_array_is_told_as_a_whole(filled: Store) -> None:
    totals = filled.array_totals([2, 7], JobFilter())
    counts = {QUEUED: 2, RUNNING: 1, SUCCEEDED: 1}
    assert totals[2] == ArrayTotals(2, 5, counts, started_at=20, finished_at=60)
    assert totals[7] == ArrayTotals(7, 8, {QUEUED: 1, FAILED: 1}, 40, 70)


def test_counts_follow_the_jobs(reopen: Reopen) -> None:
    store = reopen()
    known = {job.id: job for job in jobs()}
    store.commit(Changes(specs={1: a_spec()}, jobs=known))
    moved = a_job(4, array=2, index=3, project="p", queue="q", state=RUNNING)
    store.commit(Changes(jobs={4: moved}))
    assert store.counts(JobFilter(queue="q")) == {QUEUED: 2, RUNNING: 1}
    store.commit(Changes(removed_jobs=[7, 8, 1]))
    assert store.array_totals([7], JobFilter()) == {}
    again = reopen()
    assert again.load(0).counts == {"queued": 3, "running": 2, "succeeded": 1}
    assert again.counts(JobFilter()) == {QUEUED: 3, RUNNING: 2, SUCCEEDED: 1}


def test_jobs_that_arrive_in_slices_are_counted_all_at_once(store: Store) -> None:
    members = {number: a_job(number, array=1, index=number) for number in range(1, 5)}
    first = {number: members[number] for number in (1, 2)}
    store.commit(Changes(specs={1: a_spec()}, arrivals=[(1, 4)], jobs=first))
    assert store.counts(JobFilter()) == {}
    assert store.arrays(JobFilter((QUEUED,), order=Order.NEXT), 10) == []
    rest = {number: members[number] for number in (3, 4)}
    started = a_job(1, array=1, index=1, state=RUNNING, started_at=9)
    store.commit(Changes(removed_arrivals=[1], jobs={**rest, 1: started}))
    counts = {QUEUED: 3, RUNNING: 1}
    assert store.counts(JobFilter()) == counts
    assert store.array_totals([1], JobFilter()) == {
        1: ArrayTotals(1, 4, counts, started_at=9)
    }


def test_the_last_job_is_the_last_that_arrived(store: Store) -> None:
    store.commit(Changes(specs={1: a_spec()}, jobs={1: a_job(1)}))
    store.commit(Changes(arrivals=[(2, 4)], jobs={2: a_job(2), 3: a_job(3)}))
    assert store.select(a_selection("last")) == [1]


def test_ids_of_jobs_that_never_arrived_are_free_again(reopen: Reopen) -> None:
    store = reopen()
    store.commit(Changes(meta={"last_job": "1"}))
    arriving = Changes(arrivals=[(2, 4)], jobs={2: a_job(2)}, meta={"last_job": "4"})
    arriving.specs[1] = a_spec()
    store.commit(arriving)
    assert reopen().load(0).last_job == 1
    store = reopen()
    store.commit(arriving)
    # Another job came meanwhile.
    store.commit(Changes(jobs={5: a_job(5)}, meta={"last_job": "5"}))
    assert reopen().load(0).last_job == 5


def test_the_event_of_a_call_is_one_of_each_of_its_jobs(store: Store) -> None:
    store.commit(
        Changes(
            events=[
                Event(1, "u", "enqueued", 1, None, '{"last":1}'),
                Event(2, "u", "enqueued", 2, None, '{"last":5}'),
                Event(3, "u", "started", 3, 1),
                Event(4, "u", "enqueued", 7, None, '{"last":9}'),
                Event(5, "u", "held", 5, None),
            ]
        )
    )

    def events(job: int, *kinds: str) -> list[int]:
        return [one.at for one in store.events(0, 10, job, kinds)]

    assert [events(job) for job in (1, 2, 3, 5, 6)] == [[1], [2], [2, 3], [2, 5], []]
    assert events(3, "started") == [3]
    assert events(9, "enqueued") == [4]


def test_reads_in_a_block_are_of_one_commit(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "grass.db")
    store.commit(Changes(specs={1: a_spec()}, jobs={1: a_job(1, state=RUNNING)}))

    def write() -> None:
        for number in range(1, 40):
            ended = a_job(number, state=SUCCEEDED, finished_at=number)
            follower = a_job(number + 1, state=RUNNING)
            store.commit(Changes(jobs={number: ended, number + 1: follower}))

    writing = Thread(target=write)
    writing.start()
    while writing.is_alive():
        with store.consistent():
            running = store.jobs(JobFilter((RUNNING,)), 100)
            ended = store.counts(JobFilter(tuple(ENDED)))
        assert len(running) == 1
        assert running[0].job.id == 1 + ended.get(SUCCEEDED, 0)
    writing.join()
    store.close()
