"""What a view shows: which jobs, in which order, and how many it leaves out."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from grass.model.jobs.job import Attempt, Job
from grass.model.jobs.lifecycle import JobState
from grass.queries.listing import Listing, RowLimits, listing, picture
from grass.store.changes import Changes
from grass.store.interface import JobFilter
from grass.store.sqlite.sqlite_store import SqliteStore
from tests.support.building import a_job, a_selection, a_spec, an_attempt

QUEUED, RUNNING, HELD = JobState.QUEUED, JobState.RUNNING, JobState.HELD
SUCCEEDED, FAILED = JobState.SUCCEEDED, JobState.FAILED


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "grass.db")
    store.commit(Changes(specs={1: a_spec()}))
    yield store
    store.close()


def fill(store: SqliteStore, jobs: list[Job], *attempts: Attempt) -> None:
    store.commit(
        Changes(
            jobs={job.id: job for job in jobs},
            attempts={(one.job, one.number): one for one in attempts},
        )
    )


def an_array(first: int, count: int, **fields: object) -> list[Job]:
    """Return an array of which one job ended, two run and the others are queued."""
    ended = {"state": SUCCEEDED, "finished_at": 1000 + first, "started_at": first}
    jobs = [a_job(first, array=first, index=0, **{**ended, **fields})]
    for number in range(first + 1, first + count):
        state = RUNNING if number < first + 3 else QUEUED
        more = {"array": first, "index": number - first, "state": state, **fields}
        jobs.append(a_job(number, **more))
    return jobs


def ids(found: Listing) -> list[int]:
    return [one.job.id for one in found.jobs]


def look(
    store: SqliteStore, rows: RowLimits | None = None, **wanted: object
) -> Listing:
    return listing(store, JobFilter(**wanted), rows or RowLimits())  # type: ignore[arg-type]


def test_running_jobs_come_first_then_the_next_then_the_last(
    store: SqliteStore,
) -> None:
    fill(
        store,
        [
            a_job(1, state=FAILED, finished_at=7),
            a_job(2, state=HELD),
            a_job(3, state=JobState.WAITING),
            a_job(4),
            a_job(5, priority=2),
            a_job(6, state=SUCCEEDED, finished_at=9),
            a_job(7, state=RUNNING),
            a_job(8, state=RUNNING, priority=1),
        ],
    )
    found = look(store)
    assert ids(found) == [8, 7, 5, 4, 3, 2, 6, 1]
    assert found.left_out == {}
    assert found.totals[RUNNING] == 2


def test_an_array_is_one_row_and_hides_no_other_job(store: SqliteStore) -> None:
    fill(store, [*an_array(1, 200), a_job(201), *an_array(202, 200), a_job(402)])
    found = look(store)
    assert ids(found) == [2, 3, 203, 204, 4, 5, 6, 201, 205, 206, 207, 402, 202, 1]
    assert [one.totals.first for one in found.arrays] == [1, 202]
    assert found.arrays[0].totals.last == 200
    assert found.arrays[0].totals.states == {QUEUED: 197, RUNNING: 2, SUCCEEDED: 1}
    assert found.totals == {QUEUED: 396, RUNNING: 4, SUCCEEDED: 2}
    assert found.left_out == {QUEUED: 388}


def test_each_member_is_a_row_where_that_is_asked_for(store: SqliteStore) -> None:
    fill(store, [*an_array(1, 30), a_job(31, priority=1), *an_array(32, 30)])
    found = look(store, RowLimits(members=True))
    queued = [31, *range(4, 23)]
    assert ids(found) == [2, 3, 33, 34, *queued, 32, 1]
    assert found.arrays == []
    assert found.left_out == {QUEUED: 27 + 1 + 27 - 20}


def test_a_filtered_view_shows_what_runs_also_of_a_long_array(
    store: SqliteStore,
) -> None:
    fill(store, [*an_array(1, 300, project="p"), *an_array(301, 300), a_job(601)])
    some = RowLimits(100, 100, 10, in_all=100)
    for texts in (["@p"], ["1-300"], ["@p", "1-400"]):
        found = look(store, some, selection=a_selection(" ".join(texts)))
        assert ids(found)[:5] == [2, 3, 4, 5, 6], texts
        assert ids(found)[-1] == 1
        assert found.totals == {QUEUED: 297, RUNNING: 2, SUCCEEDED: 1}
    alone = look(store, some, states=(QUEUED,), selection=a_selection("@p"))
    assert ids(alone) == [4, 5, 6]
    assert alone.left_out == {QUEUED: 294}
    named = look(store, some, selection=a_selection("state:running"))
    assert ids(named) == [2, 3, 302, 303]


def test_a_short_view_keeps_some_room_for_jobs_that_ended(store: SqliteStore) -> None:
    ended = [a_job(n, state=SUCCEEDED, finished_at=n) for n in range(1, 21)]
    fill(store, [*ended, *(a_job(n) for n in range(21, 61))])
    found = look(store, RowLimits(10, 10, 5, in_all=10))
    assert ids(found) == [21, 22, 23, 24, 25, 20, 19, 18, 17, 16]
    assert found.left_out == {QUEUED: 35, SUCCEEDED: 15}


def test_a_job_that_was_only_sent_ahead_is_queued(store: SqliteStore) -> None:
    jobs = [a_job(n, state=RUNNING, attempts=1, array=1, index=n) for n in (1, 2, 3)]
    attempts = [an_attempt(n, after=n - 1 or None) for n in (1, 2, 3)]
    fill(store, [*jobs, a_job(4, array=1, index=4)], *attempts)
    found = picture(store, None, members=False)
    assert ids(found.listing) == [1, 2, 3, 4]
    assert found.listing.totals == {QUEUED: 3, RUNNING: 1}
    assert found.listing.left_out == {}
    assert found.listing.arrays[0].totals.states == {QUEUED: 3, RUNNING: 1}
    assert found.totals == {QUEUED: 3, RUNNING: 1}
    few = look(store, RowLimits(1, 1, 0, in_all=1))
    assert ids(few) == [1]
    assert few.totals == {QUEUED: 3, RUNNING: 1}
    assert few.arrays[0].totals.states == {QUEUED: 3, RUNNING: 1}


@pytest.mark.parametrize(
    "wanted",
    [
        JobFilter(states=(RUNNING,)),
        JobFilter(selection=a_selection("state:running")),
    ],
)
def test_a_view_of_running_jobs_has_none_that_was_only_sent_ahead(
    store: SqliteStore, wanted: JobFilter
) -> None:
    jobs = [a_job(n, state=RUNNING, attempts=1) for n in (1, 2, 3)]
    fill(store, jobs, *[an_attempt(n, after=n - 1 or None) for n in (1, 2, 3)])
    found = listing(store, wanted, RowLimits())
    assert ids(found) == [1]
    assert found.totals == {RUNNING: 1}
    assert found.left_out == {}


def test_of_an_array_in_two_queues_a_view_counts_what_it_is_about(
    store: SqliteStore,
) -> None:
    queued = [a_job(n, array=1, index=n, queue="a") for n in (1, 2)]
    fill(store, [*queued, a_job(3, array=1, index=3, queue="b")])
    assert look(store).arrays[0].totals.states == {QUEUED: 3}
    by_selector = {"selection": a_selection("queue:a")}
    for wanted in ({"queue": "a"}, by_selector):
        [view] = look(store, **wanted).arrays
        assert (view.totals.first, view.totals.states) == (1, {QUEUED: 2})


def test_an_overview_of_a_queue_has_the_totals_of_that_queue(
    store: SqliteStore,
) -> None:
    fill(store, [a_job(1), a_job(2, queue="q"), a_job(3, queue="q", state=RUNNING)])
    found = picture(store, "q", members=False)
    assert found.listing.totals == {QUEUED: 1, RUNNING: 1}
    assert found.totals == {QUEUED: 2, RUNNING: 1}
    assert found.queues["q"] == {QUEUED: 1, RUNNING: 1}


def test_a_picture_may_have_fewer_running_jobs_and_counts_all(
    store: SqliteStore,
) -> None:
    fill(store, [a_job(n, state=RUNNING) for n in range(1, 9)])
    found = picture(store, None, members=False, running=3)
    assert ids(found.listing) == [1, 2, 3]
    assert found.listing.left_out == {RUNNING: 5}
    assert found.totals == {RUNNING: 8}
