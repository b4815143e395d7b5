"""Reading back a long queue: what is alike is read once, and nothing is passed over."""

from pathlib import Path

from tests.support.building import a_job, a_spec

from grass.model.jobs.job import Job, alike
from grass.model.jobs.lifecycle import JobState
from grass.store.changes import Changes
from grass.store.interface import Store
from grass.store.sql import loading
from grass.store.sqlite.sqlite_store import SqliteStore


def long_queue() -> list[Job]:
    """Give two arrays with jobs between, among and after them that are not alike."""
    jobs = [a_job(n, array=1, index=n - 1, created_at=5) for n in range(1, 3000)]
    jobs += [a_job(n, words=("other", str(n))) for n in range(3000, 3010)]
    jobs += [
        a_job(n, array=3010, index=n, created_at=6, queue="q1")
        for n in range(3010, 5000)
    ]
    jobs[1200] = a_job(1201, array=1, index=1200, created_at=5, priority=7)
    jobs[1500].attempts, jobs[1500].reason = 2, "returned"
    jobs[1501].state = JobState.HELD
    jobs[2800].state, jobs[2800].met = JobState.WAITING, True
    jobs[4000].state, jobs[4000].finished_at = JobState.FAILED, 9
    return jobs


def test_a_long_queue_is_read_back_as_it_was(store: Store) -> None:
    jobs = long_queue()
    store.commit(Changes(specs={1: a_spec()}, jobs={job.id: job for job in jobs}))
    unfinished = [job for job in jobs if job.state is not JobState.FAILED]
    assert store.load(0).jobs == unfinished


def test_jobs_that_are_alike_share_what_they_have_alike(tmp_path: Path) -> None:
    store, jobs = SqliteStore(tmp_path / "grass.db"), long_queue()
    store.commit(Changes(specs={1: a_spec()}, jobs={job.id: job for job in jobs}))
    loaded = store.load(0).jobs
    assert loaded[2].common is loaded[1199].common
    # Each of those in between breaks a run, and there is one for each after it.
    assert sum(1 for _ in alike(loaded)) < 25
    store.close()


def test_what_is_still_arriving_is_left_out_of_a_run(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "grass.db")
    jobs = {n: a_job(n, created_at=5) for n in range(1, 2 * loading.LONG)}
    arriving = [(1500, 1600)]
    store.commit(Changes(specs={1: a_spec()}, jobs=jobs, arrivals=arriving))
    loaded = loading.unfinished(store._writer, store._sql)
    assert [job.id for job in loaded] == [n for n in jobs if not 1500 <= n <= 1600]
    store.close()
