"""Changing jobs that have not started: every field, all jobs or none."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.brokerage import ME, SECOND, Brokerage

from grass.broker.core.calls import Edit, Enqueue, NewJob
from grass.errors import GrassError, NeverFits, NotFound, Refused, UsageError
from grass.link.messages import Start
from grass.model.amount_text import WHOLE
from grass.model.jobs.lifecycle import JobState
from grass.model.jobs.spec import JobPatch
from grass.model.resources import request_from

Meanwhile = Callable[[Brokerage], None]


@pytest.fixture
def queued(broker: Brokerage) -> int:
    broker.create_queue("q1", "{cpu:2}")
    broker.create_queue("py", "{cpu:2}", "python")
    broker.pause()
    return broker.enqueue("train", "--lr", "1")


def started(broker: Brokerage) -> Start:
    broker.resume()
    (start,) = broker.said(Start)
    assert isinstance(start, Start)
    return start


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"words": ("eval",), "shell": False}, {"words": ("eval",), "shell": False}),
        ({"words": ("a | b",), "shell": True}, {"words": ("a | b",), "shell": True}),
        ({"words": ("a | b",), "shell": None}, {"words": ("a | b",), "shell": True}),
        ({"words": ("a", "b"), "shell": None}, {"words": ("a", "b"), "shell": False}),
        ({"words": ("a b",)}, {"shell": True}),
        ({"name": "other"}, {"name": "other"}),
        ({"name": "\udcff"}, {"name": "?"}),
        ({"request": request_from("{cpu:2}")}, {}),
        ({"time_limit_s": 60.0}, {"time_limit_s": 60.0}),
        ({"cwd": "/data"}, {"cwd": "/data"}),
        ({"env": (("A", "1"),)}, {"env": (("A", "1"),)}),
        ({"queue": "py"}, {"prefix": ("python",)}),
        ({"retries": 3}, {}),
        ({"priority": 7}, {}),
    ],
)
def test_each_field_is_changed_for_the_attempt_that_follows(
    broker: Brokerage,
    queued: int,
    meanwhile: Meanwhile,
    changes: dict[str, Any],
    told: dict[str, Any],
) -> None:
    assert broker.edit(queued, **changes).jobs == [queued]
    assert broker.job_state(queued) is JobState.QUEUED
    meanwhile(broker)
    found = broker.job(queued)
    for name in ("priority", "queue"):
        if name in changes:
            assert getattr(found.job, name) == changes[name]
    for name in ("request", "time_limit_s", "retries"):
        if name in changes:
            assert getattr(found.spec, name) == changes[name]
    start = started(broker)
    for name, value in told.items():
        assert getattr(start, name) == value


def test_who_shares_the_spec_keeps_it(broker: Brokerage, queued: int) -> None:
    members = broker.array(3)
    broker.edit(members[1], request=request_from("{cpu:2}"), retries=1)
    specs = [broker.job(job).spec for job in members]
    assert [spec.retries for spec in specs] == [0, 1, 0]
    assert specs[0] == specs[2]


def test_the_order_follows_the_new_priority(
    broker: Brokerage, queued: int, meanwhile: Meanwhile
) -> None:
    other = broker.enqueue(require="{cpu:2}")
    broker.edit(other, priority=5)
    meanwhile(broker)
    assert started(broker).job == other
    broker.pause()
    broker.edit(queued, priority=9)
    broker.exit(other)
    assert started(broker).job == queued


def test_the_new_request_is_what_is_placed(broker: Brokerage, queued: int) -> None:
    broker.edit(queued, request=request_from("{cpu:0.5}"))
    assert started(broker).allocation == {"cpu": {"0": WHOLE // 2}}


def test_env_is_added_to_what_there_was(broker: Brokerage, queued: int) -> None:
    broker.edit(queued, env=(("A", "1"), ("B", "2")))
    broker.edit(queued, env=(("A", "3"),))
    assert dict(started(broker).env) == {"A": "3", "B": "2"}


def test_a_limit_is_lifted_with_none(broker: Brokerage) -> None:
    broker.pause()
    job = broker.enqueue(time_limit_s=5.0, begin_at=broker.now_us + 99 * SECOND)
    broker.edit(job, time_limit_s=None, begin_at=None)
    assert broker.job_state(job) is JobState.QUEUED
    assert started(broker).time_limit_s is None


def test_a_time_to_begin_is_set_moved_and_taken_away(
    broker: Brokerage, queued: int, meanwhile: Meanwhile
) -> None:
    broker.resume()
    broker.exit(queued)
    job = broker.enqueue(begin_at=broker.now_us + 100 * SECOND)
    for later in (500, 50, 200):
        at = broker.now_us + later * SECOND
        broker.edit(job, begin_at=at)
        assert broker.core.next_time() == at
        meanwhile(broker)
    broker.pass_time(100)
    assert broker.job_state(job) is JobState.WAITING
    broker.pass_time(100)
    assert broker.job_state(job) is JobState.RUNNING


def test_a_queued_job_waits_again_for_a_later_time(
    broker: Brokerage, queued: int, meanwhile: Meanwhile
) -> None:
    broker.edit(queued, begin_at=broker.now_us + 100 * SECOND)
    meanwhile(broker)
    broker.resume()
    assert broker.job_state(queued) is JobState.WAITING
    broker.pass_time(200)
    assert broker.job_state(queued) is JobState.RUNNING


def test_dependencies_are_added_and_taken_away(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first, second = broker.enqueue(), broker.enqueue()
    job = broker.enqueue()
    broker.edit(job, after=(f"{first}:any", str(second)))
    assert broker.job_state(job) is JobState.WAITING
    meanwhile(broker)
    broker.exit(second)
    assert broker.job_state(job) is JobState.WAITING
    broker.edit(job, after=())
    assert broker.started_jobs() == [job]
    assert not broker.state.dependencies.dependents


def test_a_dependency_that_was_met_can_be_asked_for_anew(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first, second = broker.enqueue(), broker.enqueue()
    job = broker.enqueue(require="{cpu:2}", after=(str(first),))
    broker.exit(first)
    assert broker.job_state(job) is JobState.QUEUED
    broker.edit(job, after=(str(first), str(second)))
    assert broker.job_state(job) is JobState.WAITING
    meanwhile(broker)
    broker.exit(second)
    assert broker.started_jobs() == [job]


def test_another_edit_keeps_what_is_known_of_ended_dependencies(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first, second = broker.enqueue(), broker.enqueue()
    job = broker.enqueue(after=(str(first), str(second)))
    broker.exit(first)
    meanwhile(broker)
    broker.edit(job, priority=3)
    assert broker.job_state(job) is JobState.WAITING
    meanwhile(broker)
    broker.exit(second)
    assert broker.started_jobs() == [job]


def test_an_edit_of_a_job_whose_dependencies_were_met_leaves_no_trace_of_them(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    broker.pause()
    job = broker.enqueue(after=(str(first),))
    broker.exit(first)
    broker.edit(job, priority=3)
    assert not broker.state.dependencies.dependents
    broker.rerun(first)
    broker.cancel(first)
    meanwhile(broker)
    assert broker.job_state(job) is JobState.QUEUED
    assert broker.prune(first) == [first]


@pytest.mark.parametrize("state", ["held", "waiting", "queued"])
def test_an_edit_leaves_the_state_as_it_is(
    broker: Brokerage, state: str, meanwhile: Meanwhile
) -> None:
    broker.pause()
    first = broker.enqueue()
    after = (str(first),) if state == "waiting" else ()
    job = broker.enqueue(hold=state == "held", after=after)
    broker.edit(job, priority=1, time_limit_s=9.0, name="x")
    assert broker.job_state(job).value == state
    meanwhile(broker)
    assert broker.job_state(job).value == state


def test_a_retry_that_waits_can_be_edited_and_keeps_its_pause(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    job = broker.enqueue("old", retries=2, backoff_s=50.0)
    broker.exit(job, 1)
    broker.edit(job, words=("new",), shell=False)
    assert broker.job_state(job) is JobState.WAITING
    meanwhile(broker)
    broker.pass_time(100)
    (start,) = broker.said(Start)
    assert (start.words, start.number) == (("new",), 2)


def refused(broker: Brokerage, error: type[GrassError], *jobs: int, **to: Any) -> str:
    """Have an edit refused, and see that it changed nothing."""
    return broker.refused(error, lambda: broker.edit(*jobs, **to))


def test_jobs_that_run_or_have_ended_are_not_edited(broker: Brokerage) -> None:
    runs, done = broker.enqueue(), broker.enqueue()
    broker.exit(done)
    assert "runs already" in refused(broker, Refused, runs, priority=1)
    assert "has ended" in refused(broker, Refused, done, priority=1)
    assert "has ended" in refused(broker, Refused, 99, priority=1)


def test_one_bad_job_among_many_changes_none(broker: Brokerage) -> None:
    runs = broker.enqueue()
    broker.pause()
    jobs = [broker.enqueue() for _ in range(3)]
    refused(broker, Refused, *jobs, runs, priority=1)
    assert {broker.job(job).job.priority for job in jobs} == {0}


@pytest.mark.parametrize(
    ("error", "changes", "told"),
    [
        (NeverFits, {"request": request_from("{cpu:9}")}, "cpu: asked 9, the most"),
        (NeverFits, {"request": request_from("{gpu:1}")}, "has no gpu"),
        (NotFound, {"queue": "nowhere"}, "there is no queue `nowhere`"),
        (UsageError, {"words": ("A=1",), "shell": False}, "no command was given"),
        (UsageError, {"words": ("a\0b",), "shell": False}, "a NUL byte"),
        (UsageError, {"words": ("train", "{gpu}"), "shell": False}, "`{gpu}` is used"),
        (UsageError, {"env": (("A", "{gpu}"),)}, "`{gpu}` is used"),
        (UsageError, {"cwd": "/data/{gpu}"}, "`{gpu}` is used"),
        (NotFound, {"after": ("99",)}, "there is no job 99"),
        (UsageError, {"after": ("x",)}, "`x` names no job"),
    ],
)
def test_what_could_never_run_is_refused(
    broker: Brokerage,
    queued: int,
    error: type[GrassError],
    changes: dict[str, Any],
    told: str,
) -> None:
    assert told in refused(broker, error, queued, **changes)


def test_a_dependency_that_failed_is_refused_as_never_met(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    broker.exit(first, 1)
    broker.pause()
    job = broker.enqueue()
    meanwhile(broker)
    refused(broker, NeverFits, job, after=(str(first),))
    broker.edit(job, after=(f"{first}:failed",))
    assert broker.job_state(job) is JobState.QUEUED


def test_cycles_are_refused(broker: Brokerage, meanwhile: Meanwhile) -> None:
    broker.pause()
    one = broker.enqueue()
    two = broker.enqueue(after=(str(one),))
    three = broker.enqueue(after=(f"{two}:any",), hold=True)
    meanwhile(broker)
    for after in (one, two, three):
        text = refused(broker, Refused, one, after=(f"{after}:any",))
        assert "wait for itself" in text
    refused(broker, Refused, two, after=("last",))
    refused(broker, Refused, one, two, after=(str(three),))
    broker.edit(three, after=(str(one),))
    broker.edit(two, after=(str(three),))
    refused(broker, Refused, one, after=(str(two),))


def test_a_dependency_that_was_met_closes_no_cycle(broker: Brokerage) -> None:
    one = broker.enqueue()
    broker.pause()
    two = broker.enqueue(after=(str(one),))
    broker.exit(one)
    broker.rerun(one)
    broker.edit(one, after=(str(two),))
    broker.resume()
    assert broker.running() == [two]
    broker.exit(two)
    assert broker.running() == [one]


def test_the_same_job_named_twice_is_edited_once(broker: Brokerage) -> None:
    broker.pause()
    job = broker.enqueue()
    assert broker.edit(job, job, priority=4).jobs == [job]


def test_a_spec_that_is_not_in_use_any_more_can_be_made_again(
    broker: Brokerage,
) -> None:
    broker.pause()
    jobs = [broker.enqueue() for _ in range(2)]
    broker.edit(*jobs, retries=1)
    broker.cancel(jobs[0])
    assert broker.prune(jobs[0]) == jobs[:1]
    broker.edit(jobs[1], retries=0)
    third = broker.enqueue()
    broker.restart_all()
    assert broker.job(third).spec == broker.job(jobs[1]).spec


def test_an_environment_outlives_an_edit(broker: Brokerage) -> None:
    broker.pause()
    new = [NewJob(("true",), JobPatch())]
    broker.call(Enqueue(ME, new, None, {"HOME": "/home/me"}))
    broker.call(Edit(ME, [1], JobPatch(time_limit_s=5.0)))
    assert broker.prune() == []
    broker.restart_all()
    assert started(broker).base_env == {"HOME": "/home/me"}
