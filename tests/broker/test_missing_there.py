"""Starts that a worker returns because something is missing there."""

import json

import pytest
from tests.support.brokerage import SECOND, Brokerage

from grass.broker.core.attempts.avoided import FIRST_PAUSE_US, LONGEST_PAUSE_US
from grass.link.messages import Exited, Returned, Start, Started
from grass.model.jobs.lifecycle import JobState
from grass.queries.job_documents import why_waiting

DESK, FARM = "worker-1", "farm"
NO_FOLDER = "could not start: directory `/srv/code`: no such file or directory"


@pytest.fixture
def two(broker: Brokerage) -> Brokerage:
    broker.join(FARM, "{cpu:2}")
    return broker


def give_back(broker: Brokerage, job: int, missing: str = "/srv/code") -> None:
    attempt = broker.state.attempts[job]
    name = broker.name(job)
    told = Returned(name, NO_FOLDER, attempt.started_at, missing)
    broker.hear(told, attempt.worker)


def finish(broker: Brokerage, job: int) -> None:
    """Have a job succeed where it is."""
    attempt = broker.state.attempts[job]
    ended = Exited(broker.name(job), 5, 0, placed_at=attempt.started_at)
    broker.hear(Started(broker.name(job), 7, 5), attempt.worker)
    broker.hear(ended, attempt.worker)


def why(broker: Brokerage, job: int) -> str:
    return why_waiting(broker.state.jobs[job], broker.state, 0.0, {}) or ""


def test_a_job_goes_to_another_worker_and_is_neither_failed_nor_retried(
    two: Brokerage,
) -> None:
    job = two.enqueue(worker=None)
    first = two.where(job)
    give_back(two, job)
    assert two.where(job) != first
    kept = two.job(job)
    assert (kept.job.attempts, kept.job.failures) == (1, 0)
    assert len(kept.attempts) == 1
    (line,) = two.store.events(0, 100, job, ("returned",))
    assert json.loads(line.data) == {"reason": NO_FOLDER, "worker": first_name(first)}
    finish(two, job)
    assert two.job_state(job) is JobState.SUCCEEDED


def first_name(worker: str) -> str:
    return {DESK: "desk", FARM: "farm"}.get(worker, worker)


def test_a_job_fails_once_every_worker_has_returned_it_and_names_each(
    two: Brokerage,
) -> None:
    job = two.enqueue()
    give_back(two, job)
    give_back(two, job)
    assert two.job_state(job) is JobState.FAILED
    reason = two.job(job).job.reason or ""
    assert reason.startswith("could not start on `")
    assert "`farm`" in reason
    assert reason.count("directory `/srv/code`") == 1
    assert len(two.job(job).attempts) == 1


def test_a_job_that_is_pinned_fails_with_its_worker(two: Brokerage) -> None:
    job = two.enqueue(worker=FARM)
    give_back(two, job)
    assert two.job_state(job) is JobState.FAILED
    reason = "could not start on `farm`: directory `/srv/code`: no such file or"
    assert (two.job(job).job.reason or "").startswith(reason)


def test_a_failure_of_all_workers_counts_as_a_try_and_the_next_one_is_tried(
    two: Brokerage,
) -> None:
    job = two.enqueue(worker=FARM, retries=1)
    give_back(two, job)
    assert two.where(job) == FARM
    assert two.state.jobs[job].failures == 1


def test_a_worker_that_is_away_is_waited_for(two: Brokerage) -> None:
    two.leave(DESK)
    job = two.enqueue()
    give_back(two, job)
    assert two.job_state(job) is JobState.QUEUED
    told = why(two, job)
    assert "unreachable" in told or "off" in told
    assert "not on `farm`: directory `/srv/code`: no such file" in told


def test_a_worker_without_the_directory_costs_an_array_few_starts(
    two: Brokerage,
) -> None:
    jobs = two.array(300)
    starts = 0
    while two.state.jobs:
        running = [job for job in jobs if job in two.state.attempts]
        assert running
        for job in running:
            if two.where(job) == FARM:
                starts += 1
                give_back(two, job)
            else:
                finish(two, job)
    # No more than were under way when the first was returned.
    assert 0 < starts <= 16
    assert set(two.states(*jobs)) == {"succeeded"}


def test_jobs_of_another_directory_go_there(two: Brokerage) -> None:
    job = two.enqueue(cwd="/srv/code")
    while two.where(job) != FARM:
        job = two.enqueue(cwd="/srv/code")
    give_back(two, job)
    other = two.enqueue(cwd="/srv/other", worker=FARM)
    assert two.where(other) == FARM


def test_what_is_filled_in_for_each_job_is_missing_for_that_job_alone(
    two: Brokerage,
) -> None:
    jobs = two.array(2, cwd="/srv/{index}", worker=FARM)
    give_back(two, jobs[0], "/srv/1")
    assert two.job_state(jobs[0]) is JobState.FAILED
    assert two.where(jobs[1]) == FARM


@pytest.mark.parametrize("again", ["pause", "reconnect", "resume"])
def test_the_worker_is_tried_again(two: Brokerage, again: str) -> None:
    two.leave(DESK)
    job = two.enqueue()
    give_back(two, job)
    assert job not in two.state.attempts
    if again == "pause":
        assert two.core.next_time() == two.now_us + FIRST_PAUSE_US
        two.pass_time(FIRST_PAUSE_US / SECOND + 1)
    elif again == "reconnect":
        two.leave(FARM)
        two.join(FARM, "{cpu:2}")
    else:
        assert two.rest(FARM, False).changed
    assert two.where(job) == FARM
    finish(two, job)
    assert two.job_state(job) is JobState.SUCCEEDED


def test_pauses_grow_up_to_a_limit(two: Brokerage) -> None:
    two.leave(DESK)
    job = two.enqueue()
    pauses = []
    for _ in range(8):
        give_back(two, job)
        at = two.core.next_time()
        assert at is not None
        pauses.append(at - two.now_us)
        two.pass_time(pauses[-1] / SECOND + 1)
    assert pauses[:3] == [FIRST_PAUSE_US, 2 * FIRST_PAUSE_US, 4 * FIRST_PAUSE_US]
    assert pauses[-1] == LONGEST_PAUSE_US


def test_a_restart_keeps_who_has_returned_a_job(two: Brokerage) -> None:
    two.leave(DESK)
    job = two.enqueue()
    give_back(two, job)
    two.restart()
    two.leave(DESK)
    two.join(FARM, "{cpu:2}")
    assert job not in two.state.attempts
    assert "not on `farm`" in why(two, job)
    two.hello()
    assert two.where(job) == DESK


def test_a_rerun_forgets_it(two: Brokerage) -> None:
    job = two.enqueue(worker=FARM)
    give_back(two, job)
    two.rerun(job)
    assert two.where(job) == FARM
    assert not two.state.jobs[job].returns


def test_the_only_worker_of_a_cluster_is_asked_to_return_nothing(
    broker: Brokerage,
) -> None:
    broker.enqueue()
    (start,) = broker.said(Start)
    assert not start.may_return
    broker.join(FARM)
    broker.enqueue(worker=FARM)
    assert broker.said(Start)[-1].may_return


def test_returned_starts_drain_no_worker(two: Brokerage) -> None:
    for number in range(30):
        job = two.enqueue(cwd=f"/srv/{number}", worker=FARM)
        give_back(two, job, f"/srv/{number}")
    assert not two.state.workers[FARM].draining
    assert two.where(two.enqueue(worker=FARM)) == FARM
