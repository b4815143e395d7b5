"""Attempts of jobs that have ended, from every store."""

import pytest
from tests.support.building import a_job, a_spec, an_attempt

from grass.model.jobs.job import Attempt
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.store.changes import Changes
from grass.store.interface import AttemptSpan, Store

LOST, EXITED = AttemptState.LOST, AttemptState.EXITED


def tried(job: int, number: int, state: AttemptState = EXITED) -> Attempt:
    at = 10 * job + number
    return an_attempt(job, number, state=state, started_at=at, finished_at=at + 1)


@pytest.fixture
def filled(store: Store) -> Store:
    """Three jobs that ended, two of them at the same time, and one that runs."""
    jobs = [
        a_job(1, state=JobState.FAILED, attempts=3, finished_at=100),
        a_job(2, state=JobState.SUCCEEDED, attempts=1, finished_at=100, owner="uid:7"),
        a_job(3, state=JobState.CANCELLED, attempts=1, finished_at=50),
        a_job(4, state=JobState.RUNNING, attempts=1),
        a_job(5, state=JobState.CANCELLED, finished_at=200),
    ]
    attempts = [
        *(tried(1, 1), tried(1, 2, LOST), tried(1, 3)),
        *(tried(2, 1), tried(3, 1)),
        an_attempt(4, state=AttemptState.RUNNING),
    ]
    store.commit(
        Changes(
            specs={1: a_spec()},
            jobs={job.id: job for job in jobs},
            attempts={(one.job, one.number): one for one in attempts},
        )
    )
    return store


def names(spans: list[AttemptSpan]) -> list[tuple[int, int, str]]:
    return [(one.job, one.number, one.state.value) for one in spans]


def test_those_of_the_job_that_ended_last_are_first(filled: Store) -> None:
    assert names(filled.attempts_since(0, 100)) == [
        (2, 1, "succeeded"),
        (1, 3, "failed"),
        (1, 2, "lost"),
        (1, 1, "failed"),
        (3, 1, "cancelled"),
    ]
    assert names(filled.attempts_since(51, 2)) == [
        (2, 1, "succeeded"),
        (1, 3, "failed"),
    ]
    assert filled.attempts_since(201, 100) == []


def test_what_an_attempt_held_is_told_with_its_owner(filled: Store) -> None:
    first = filled.attempts_since(0, 1)[0]
    was = tried(2, 1)
    assert first == AttemptSpan(
        *(2, 1, "uid:7", JobState.SUCCEEDED, was.worker, was.allocation, 21, 22, 100)
    )


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_have_each_attempt_once(filled: Store, limit: int) -> None:
    read, last = list[AttemptSpan](), None
    while page := filled.attempts_since(0, limit, last):
        read += page
        last = page[-1]
    assert read == filled.attempts_since(0, 100)
