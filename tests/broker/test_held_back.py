"""Workers where jobs fail at once that run elsewhere."""

import json
from itertools import pairwise

import pytest
from tests.support.brokerage import SECOND, Brokerage

from grass.broker.core.attempts import avoided, held_back
from grass.broker.core.attempts.avoided import FIRST_PAUSE_US
from grass.broker.core.attempts.held_back import FAILURES_IN_A_ROW, QUICK_S
from grass.broker.core.state import State
from grass.link.messages import Exited, Started
from grass.model.jobs.job import Job
from grass.model.jobs.lifecycle import JobState

DESK, FARM = "worker-1", "farm"


@pytest.fixture
def two(broker: Brokerage) -> Brokerage:
    broker.join(FARM, "{cpu:1}")
    return broker


def end(broker: Brokerage, job: int, code: int, ran_s: float = 1.0) -> None:
    attempt = broker.state.attempts[job]
    name, at = broker.name(job), attempt.started_at
    broker.hear(Started(name, 7, 5, placed_at=at), attempt.worker)
    ended = Exited(name, 5, code, placed_at=at, ran_s=ran_s)
    broker.hear(ended, attempt.worker)


def play(broker: Brokerage, jobs: list[int], rounds: int = 100) -> int:
    """Have jobs fail on the farm and run on the desk; return how many fail."""
    failed = 0
    for _ in range(rounds):
        running = [job for job in jobs if job in broker.state.attempts]
        if not running:
            break
        for job in running:
            is_bad = broker.where(job) == FARM
            failed += is_bad
            end(broker, job, int(is_bad))
    return failed


def held(broker: Brokerage) -> list[str]:
    return [one.jobs for one in avoided.held_back(broker.state, FARM)]


def test_most_jobs_go_where_they_run(two: Brokerage) -> None:
    jobs = two.array(60)
    failed = play(two, jobs)
    assert FAILURES_IN_A_ROW <= failed <= 16
    assert held(two) == ["true"]
    (line,) = two.store.events(0, 10, None, ("worker-held-back",))
    facts = json.loads(line.data)
    assert (facts["name"], facts["jobs"]) == (FARM, "true")
    assert facts["reason"].startswith("3 jobs like it in a row failed there within 2 s")
    assert facts["reason"].endswith("and run on `desk`")


def test_jobs_of_another_program_go_there(two: Brokerage) -> None:
    play(two, two.array(40))
    assert two.where(two.enqueue("false", worker=FARM)) == FARM


def test_a_job_that_names_the_worker_goes_there(two: Brokerage) -> None:
    play(two, two.array(40))
    assert two.where(two.enqueue(worker=FARM)) == FARM


def test_jobs_that_fail_everywhere_hold_no_worker_back(two: Brokerage) -> None:
    jobs = two.array(30)
    while two.state.attempts:
        for job in list(two.state.attempts):
            end(two, job, 1)
    assert not held(two)
    assert set(two.states(*jobs)) == {"failed"}


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """When the running attempts were looked through."""
    found, real = list[int](), held_back._running_on

    def counted(state: State, job: Job, kind: str, longer_s: float) -> set[str]:
        found.append(state.now_us)
        return real(state, job, kind, longer_s)

    monkeypatch.setattr(held_back, "_running_on", counted)
    return found


def test_the_running_attempts_are_looked_through_once_a_pause_at_most(
    two: Brokerage, looks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_back, "LOOK_PAUSE_US", 20 * SECOND)
    for job in two.array(60, worker=FARM):
        end(two, job, 1)
    assert 1 < len(looks) <= 60 * 2 * SECOND // (20 * SECOND)
    assert all(later - look >= 20 * SECOND for look, later in pairwise(looks))


def test_nothing_is_looked_through_for_a_worker_that_is_held_back(
    broker: Brokerage, looks: list[int]
) -> None:
    broker.join(FARM, "{cpu:8}")
    jobs = broker.array(40)
    end(broker, next(job for job in jobs if broker.where(job) == DESK), 0)
    bad = [job for job in broker.state.attempts if broker.where(job) == FARM]
    for job in bad:
        end(broker, job, 1)
    assert held(broker)
    assert (len(bad), len(looks)) == (8, 1)


def test_jobs_that_fail_late_hold_no_worker_back(two: Brokerage) -> None:
    for job in two.array(30):
        while job not in two.state.attempts:
            pytest.fail("it waits")
        is_bad = two.where(job) == FARM
        end(two, job, int(is_bad), ran_s=QUICK_S + 1)
    assert not held(two)


def test_a_job_that_runs_elsewhere_for_long_is_enough(two: Brokerage) -> None:
    two.array(40)
    for job in [one for one in two.state.attempts if two.where(one) == DESK]:
        name = two.name(job)
        at = two.state.attempts[job].started_at
        two.hear(Started(name, 7, 5, placed_at=at), DESK)
    two.pass_time(QUICK_S + 1)
    for _ in range(FAILURES_IN_A_ROW):
        bad = [one for one in two.state.attempts if two.where(one) == FARM]
        end(two, bad[0], 1)
    assert held(two) == ["true"]
    assert all(two.where(one) == DESK for one in two.state.attempts)


def test_after_a_pause_one_job_tries_it_and_all_go_there_once_it_runs(
    two: Brokerage,
) -> None:
    jobs = two.array(100)
    play(two, jobs, rounds=6)
    assert held(two)
    for number in range(2):
        two.pass_time(FIRST_PAUSE_US * 2**number / SECOND + 1)
        (there,) = [one for one in two.state.attempts if two.where(one) == FARM]
        assert held(two)
        end(two, there, 1 - number)
        assert bool(held(two)) is (number == 0)
    assert [one for one in two.state.attempts if two.where(one) == FARM]


@pytest.mark.parametrize("how", ["leave", "drain", "resume"])
def test_it_is_not_held_back_without_the_other_or_against_a_person(
    two: Brokerage, how: str
) -> None:
    jobs = two.array(60)
    play(two, jobs, rounds=20)
    assert held(two)
    if how == "leave":
        two.leave(DESK)
    elif how == "drain":
        two.rest("desk")
    else:
        assert two.rest(FARM, False).changed
    assert not held(two)
    assert [one for one in two.state.attempts if two.where(one) == FARM]


def test_a_lone_worker_counts_nothing(broker: Brokerage) -> None:
    for job in broker.array(2):
        end(broker, job, 1)
        assert broker.job_state(job) is JobState.FAILED
    assert not broker.state.avoided.ends
