"""Running ended jobs again: the same job, one more attempt."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.brokerage import ME, Brokerage
from tests.support.building import WORKER

from grass.broker.core.calls import Cancel, Edit, Enqueue, NewJob, Prune, Rerun
from grass.errors import Busy, GrassError, NeverFits, NotFound, Refused
from grass.link.messages import Exited, Forget, Start
from grass.model.amount_text import WHOLE
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.jobs.spec import JobPatch
from grass.model.resources import request_from

Meanwhile = Callable[[Brokerage], None]


@pytest.mark.parametrize("how", ["succeeded", "failed", "cancelled", "lost", "early"])
def test_every_ended_job_can_run_again(
    broker: Brokerage, how: str, meanwhile: Meanwhile
) -> None:
    if how == "early":
        broker.pause()
    job = broker.enqueue(retries=0)
    if how in ("cancelled", "early"):
        broker.cancel(job)
    if how != "early":
        broker.exit(job, 1 if how == "failed" else 0, lost=how == "lost")
    broker.resume()
    meanwhile(broker)
    done = broker.rerun(job)
    assert (done.jobs, done.changed, done.warnings) == ([job], True, [])
    assert broker.started_jobs() == [job]
    found = broker.job(job).job
    assert found.state is JobState.RUNNING
    assert (found.exit_code, found.signal, found.reason) == (None, None, None)
    assert (found.finished_at, found.stopping_since) == (None, None)
    meanwhile(broker)
    broker.exit(job, 0)
    assert broker.job_state(job) is JobState.SUCCEEDED
    assert broker.state.totals.states[JobState.SUCCEEDED] == 1


def test_older_attempts_are_kept_and_counted_on(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    job = broker.enqueue(retries=1)
    broker.exit(job, 3, output_bytes=10)
    broker.exit(job, 4, output_bytes=10)
    assert broker.job_state(job) is JobState.FAILED
    meanwhile(broker)
    broker.rerun(job)
    assert broker.said(Start)[0].number == 3
    assert broker.job(job).job.failures == 0
    broker.exit(job, 5)
    broker.exit(job, 0)
    found = broker.job(job)
    assert [one.number for one in found.attempts] == [1, 2, 3, 4]
    assert [one.exit_code for one in found.attempts] == [3, 4, 5, 0]
    assert {one.state for one in found.attempts} == {AttemptState.EXITED}
    assert broker.state.totals.output_bytes == 20


def test_news_of_an_older_attempt_is_not_taken_for_the_new_one(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    old = Exited(broker.name(job), broker.now_us, 1)
    broker.hear(old)
    broker.rerun(job)
    broker.hear(old)
    assert broker.said(Forget) == [Forget([old.attempt])]
    assert broker.job_state(job) is JobState.RUNNING


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"words": ("eval",), "shell": None}, {"words": ("eval",), "shell": False}),
        ({"request": request_from("{cpu:2}")}, {}),
        ({"time_limit_s": 9.0}, {"time_limit_s": 9.0}),
        ({"env": (("A", "1"),), "cwd": "/x"}, {"env": (("A", "1"),), "cwd": "/x"}),
        ({"name": "second"}, {"name": "second"}),
        ({"queue": "q1", "priority": 2}, {}),
    ],
)
def test_a_rerun_may_change_the_job(
    broker: Brokerage,
    meanwhile: Meanwhile,
    changes: dict[str, Any],
    told: dict[str, Any],
) -> None:
    broker.create_queue("q1", "{cpu:2}")
    job, same = broker.enqueue(), broker.enqueue()
    for one in (job, same):
        broker.exit(one, 1)
    meanwhile(broker)
    broker.rerun(job, **changes)
    (start,) = broker.said(Start)
    for name, value in told.items():
        assert getattr(start, name) == value
    meanwhile(broker)
    found = broker.job(job)
    assert found.job.queue == changes.get("queue", "default")
    assert found.spec.request == changes.get("request", request_from("{cpu:1}"))
    broker.rerun(same)
    assert broker.job(same).spec.time_limit_s is None


def test_a_rerun_may_be_held(broker: Brokerage, meanwhile: Meanwhile) -> None:
    job = broker.enqueue()
    broker.exit(job, 1)
    broker.rerun(job, hold=True)
    assert not broker.started_jobs()
    meanwhile(broker)
    assert broker.job_state(job) is JobState.HELD
    broker.edit(job, words=("new",), shell=False)
    broker.release(job)
    assert broker.said(Start)[0].words == ("new",)


def refused(broker: Brokerage, error: type[GrassError], *jobs: int, **to: Any) -> str:
    """Have a rerun refused, and see that it changed nothing."""
    return broker.refused(error, lambda: broker.rerun(*jobs, **to))


def test_a_job_that_has_not_ended_is_refused_alone_and_skipped_among_others(
    broker: Brokerage,
) -> None:
    runs, done = broker.enqueue(), broker.enqueue()
    broker.exit(done)
    assert "has not ended" in refused(broker, Refused, runs)
    reply = broker.rerun(runs, done)
    assert reply.jobs == [done]
    assert reply.warnings == [f"job {runs} has not ended"]
    none = broker.rerun(runs, done)
    assert (none.jobs, none.changed, len(none.warnings)) == ([], False, 2)


def test_warnings_of_a_rerun_are_few(broker: Brokerage) -> None:
    broker.pause()
    reply = broker.rerun(*broker.array(50))
    assert len(reply.warnings) <= 11


def test_jobs_that_never_were_are_refused(broker: Brokerage) -> None:
    job = broker.enqueue()
    broker.exit(job)
    refused(broker, NotFound, job, 99)
    assert broker.job_state(job) is JobState.SUCCEEDED


def test_what_could_never_run_now_is_refused(broker: Brokerage) -> None:
    broker.create_queue("q1", "{printer:1}")
    job = broker.enqueue(queue="q1", require="{printer:1}")
    other = broker.enqueue()
    for one in (job, other):
        broker.exit(one)
    told = refused(broker, NeverFits, other, request=request_from("{cpu:9}"))
    assert "cpu: asked 9, the most" in told
    broker.delete_queue("q1")
    assert "no queue `q1`" in refused(broker, NotFound, other, job)
    told = refused(broker, NeverFits, other, job, queue="default")
    assert "queue `default` has no printer" in told
    assert broker.rerun(other).jobs == [other]


def test_a_refused_rerun_leaves_no_spec_behind(broker: Brokerage) -> None:
    """Known to memory alone, its number would be given out without being stored."""
    job = broker.enqueue(retries=3)
    broker.exit(job)
    refused(broker, NeverFits, job, request=request_from("{cpu:9}"))
    assert broker.prune(job) == [job]
    again = broker.enqueue(retries=3)
    broker.restart_all()
    assert broker.job(again).spec.retries == 3


def test_the_same_job_named_twice_runs_once(broker: Brokerage) -> None:
    job = broker.enqueue()
    broker.exit(job)
    assert broker.rerun(job, job).jobs == [job]
    assert broker.job_state(job) is JobState.RUNNING


def test_the_environment_is_known_again(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    new = [NewJob(("true",), JobPatch())]
    broker.call(Enqueue(ME, new, None, {"HOME": "/home/me"}))
    broker.exit(1)
    broker.prune()
    meanwhile(broker)
    broker.rerun(1)
    assert broker.said(Start)[0].base_env == {"HOME": "/home/me"}


def test_an_end_and_a_rerun_in_one_batch(broker: Brokerage) -> None:
    job = broker.enqueue()
    broker.step_hear(Exited(broker.name(job), broker.now_us, 1))
    broker.step(Rerun(ME, [job], wanted=[job]))
    (ended,) = broker.state.batch.ended
    assert ended.state is JobState.FAILED
    broker.flush()
    assert broker.started_jobs() == [job]
    assert [one.exit_code for one in broker.job(job).attempts] == [1, None]


def test_an_edit_a_cancel_and_a_rerun_in_one_batch(broker: Brokerage) -> None:
    broker.pause()
    job = broker.enqueue()
    broker.step(Edit(ME, [job], JobPatch(time_limit_s=5.0)))
    broker.step(Cancel(ME, [job]))
    broker.step(Rerun(ME, [job], wanted=[job]))
    broker.flush()
    assert broker.job(job).spec.time_limit_s == 5.0
    assert broker.job_state(job) is JobState.QUEUED


def test_a_job_that_was_added_and_cancelled_in_the_same_batch(
    broker: Brokerage,
) -> None:
    broker.pause()
    broker.step(broker.new_job())
    broker.step(Cancel(ME, [1]))
    broker.step(Rerun(ME, [1], wanted=[1]))
    broker.flush()
    assert broker.job_state(1) is JobState.QUEUED


def test_a_job_that_runs_again_is_not_pruned_in_the_same_batch(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    broker.exit(job)
    prune = Prune(ME, [job], wanted=[job])
    broker.step(Rerun(ME, [job], wanted=[job]))
    broker.step(prune)
    broker.flush()
    assert broker.job_state(job) is JobState.RUNNING


def test_a_job_pruned_twice_in_one_batch_is_counted_once(broker: Brokerage) -> None:
    job = broker.enqueue()
    broker.exit(job, output_bytes=10)
    calls = [Prune(ME, [job, job], wanted=[job]) for _ in range(2)]
    for call in calls:
        broker.step(call)
    broker.flush()
    assert broker.state.totals.states[JobState.SUCCEEDED] == 0
    assert broker.state.totals.output_bytes == 0


def test_a_dependency_that_runs_again_is_waited_for_again(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first, second = broker.enqueue(), broker.enqueue()
    job = broker.enqueue(after=(str(first), str(second)))
    broker.exit(first)
    broker.rerun(first)
    meanwhile(broker)
    broker.exit(second)
    assert broker.job_state(job) is JobState.WAITING
    meanwhile(broker)
    broker.exit(first)
    assert broker.job_state(job) is JobState.RUNNING


def test_an_end_counts_though_the_job_runs_again_in_the_same_batch(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue(hold=True)
    broker.pause()
    job = broker.enqueue(after=(f"{first}:any",))
    broker.step(Cancel(ME, [first]))
    broker.step(Rerun(ME, [first], hold=True, wanted=[first]))
    broker.flush()
    meanwhile(broker)
    assert broker.states(first, job) == ["held", "queued"]
    broker.resume()
    assert broker.started_jobs() == [job]


def test_a_job_cancelled_while_it_waited_waits_again(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    job = broker.enqueue(after=(str(first),))
    broker.cancel(job)
    meanwhile(broker)
    broker.rerun(job)
    assert broker.job_state(job) is JobState.WAITING
    broker.exit(first)
    assert broker.job_state(job) is JobState.RUNNING


def test_a_job_cancelled_while_it_waited_starts_if_that_has_succeeded_since(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    job = broker.enqueue(after=(str(first),))
    broker.cancel(job)
    broker.exit(first)
    meanwhile(broker)
    broker.rerun(job)
    assert broker.job_state(job) is JobState.RUNNING


def test_a_job_whose_dependency_failed_is_refused_until_that_runs_again(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    job = broker.enqueue(after=(str(first),))
    last = broker.enqueue(after=(str(job),))
    broker.exit(first, 1)
    assert broker.states(job, last) == ["cancelled", "cancelled"]
    meanwhile(broker)
    refused(broker, NeverFits, job)
    broker.rerun(first)
    broker.rerun(job)
    meanwhile(broker)
    assert broker.job_state(job) is JobState.WAITING
    broker.rerun(last)
    broker.exit(first)
    broker.exit(job)
    assert broker.states(first, job, last) == ["succeeded", "succeeded", "running"]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_a_whole_chain_runs_again_in_whatever_order_it_is_named(
    broker: Brokerage, order: tuple[int, ...], meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    job = broker.enqueue(after=(str(first),))
    last = broker.enqueue(after=(str(job),))
    chain = [first, job, last]
    broker.exit(first, 1)
    meanwhile(broker)
    broker.rerun(*(chain[place] for place in order))
    assert broker.states(*chain) == ["running", "waiting", "waiting"]
    meanwhile(broker)
    broker.exit(first)
    broker.exit(job)
    assert broker.states(*chain) == ["succeeded", "succeeded", "running"]


def test_a_rerun_closes_no_cycle(broker: Brokerage) -> None:
    broker.pause()
    one = broker.enqueue(hold=True)
    two = broker.enqueue(after=(f"{one}:any",), hold=True)
    broker.cancel(one)
    text = refused(broker, Refused, one, after=(str(two),))
    assert "wait for itself" in text
    broker.cancel(two)
    broker.rerun(one, after=(f"{two}:any",), hold=True)
    refused(broker, Refused, two)
    broker.cancel(one)
    refused(broker, Refused, one, two)


def test_dependencies_that_were_met_are_not_looked_at_again(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    first = broker.enqueue()
    second = broker.enqueue(after=(str(first),))
    broker.exit(first)
    broker.exit(second)
    broker.prune(first)
    meanwhile(broker)
    broker.rerun(second)
    assert broker.started_jobs() == [second]
    assert not broker.state.dependencies.dependents


def test_a_member_that_runs_again_is_still_a_member(
    broker: Brokerage, meanwhile: Meanwhile
) -> None:
    members = broker.array(4, at_most=1, max_fails=2)
    broker.exit(members[0], 1)
    broker.exit(members[1])
    meanwhile(broker)
    broker.rerun(members[0], priority=5)
    assert broker.running() == [members[2]]
    broker.exit(members[2])
    (start,) = broker.said(Start)
    assert (start.job, start.index, start.number) == (members[0], 1, 2)
    broker.exit(members[0], 1)
    assert broker.state.queues["default"].paused


def test_units_are_taken_anew(broker: Brokerage) -> None:
    job = broker.enqueue(require="{cpu:2}")
    broker.exit(job)
    other = broker.enqueue()
    broker.rerun(job)
    assert broker.job_state(job) is JobState.QUEUED
    broker.exit(other)
    assert broker.started_jobs() == [job]
    assert broker.state.scheduler.free(WORKER) == {"cpu": {"0": 0, "1": 0}}
    broker.exit(job)
    assert broker.state.scheduler.free(WORKER)["cpu"]["1"] == WHOLE


def test_a_job_whose_environment_is_forgotten_in_its_batch_runs_again_a_moment_later(
    broker: Brokerage,
) -> None:
    broker.pause()
    call = broker.new_job()
    call.base_env = {"HOME": "/home/me"}
    job = broker.step(call).first
    broker.step(Cancel(ME, [job]))
    broker.state.envs.keep_only(broker.state.specs.base_envs())
    with pytest.raises(Busy, match="only just ended"):
        broker.step(Rerun(ME, [job], wanted=[job]))
    broker.flush()
    broker.resume()
    broker.rerun(job)
    assert broker.said(Start)[0].base_env == {"HOME": "/home/me"}
