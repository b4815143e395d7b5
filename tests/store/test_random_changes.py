"""After any commits in any order a store returns the same as a dictionary."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.building import a_job, a_spec

from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import ENDED, JobState
from grass.store.changes import Changes
from grass.store.interface import JobFilter, Order
from grass.store.sqlite.sqlite_store import SqliteStore

saved = st.dictionaries(
    st.integers(1, 12),
    st.tuples(st.sampled_from(JobState), st.integers(-2, 2), st.sampled_from("ab")),
    max_size=5,
)
removed = st.lists(st.integers(1, 12), max_size=3)
batches = st.lists(st.tuples(saved, removed), max_size=8)


def job_like(number: int, state: JobState, priority: int, queue: str) -> Job:
    finished = number * 10 if state in ENDED else None
    array = None if number % 3 else 3
    return a_job(
        number,
        state=state,
        priority=priority,
        queue=queue,
        finished_at=finished,
        array=array,
    )


@settings(max_examples=40)
@given(batches)
def test_a_store_tells_the_same_as_a_dictionary(
    given_batches: list[tuple[dict[int, tuple[JobState, int, str]], list[int]]],
) -> None:
    known: dict[int, Job] = {}
    with TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "grass.db")
        store.commit(Changes(specs={1: a_spec()}, jobs={99: a_job(99)}))
        known[99] = a_job(99)
        for saves, removals in given_batches:
            jobs = {number: job_like(number, *how) for number, how in saves.items()}
            before = {one: known[one] for one in jobs if one in known}
            for number, job in before.items():
                if jobs[number].common == job.common:
                    jobs[number].common = job.common
            changes = Changes(jobs=jobs, removed_jobs=removals)
            changes.before = {
                one: (job.state, job.common) for one, job in before.items()
            }
            store.commit(changes)
            known.update(jobs)
            for number in removals:
                known.pop(number, None)
        store.close()
        again = SqliteStore(Path(folder) / "grass.db")
        check_same(again, known)
        again.close()


def check_same(store: SqliteStore, known: dict[int, Job]) -> None:
    jobs = [known[number] for number in sorted(known)]
    page = store.jobs(JobFilter(order=Order.OLDEST), 100)
    assert [found.job for found in page] == jobs
    assert store.load(0).jobs == [job for job in jobs if job.state not in ENDED]
    for queue in "ab":
        here = Counter(job.state for job in jobs if job.queue == queue)
        assert store.counts(JobFilter(queue=queue)) == here
    arrays = {job.array for job in jobs if job.array is not None}
    for array, totals in store.array_totals(sorted(arrays), JobFilter()).items():
        members = [job for job in jobs if job.array == array]
        assert totals.states == Counter(job.state for job in members)
    counts = {state: sum(job.state is state for job in jobs) for state in JobState}
    assert store.load(0).counts == {s: n for s, n in counts.items() if n}
    queued = JobFilter((JobState.QUEUED,), order=Order.OLDEST)
    waiting = [job for job in jobs if job.state is JobState.QUEUED]
    assert [found.job for found in store.jobs(queued, 100)] == waiting
