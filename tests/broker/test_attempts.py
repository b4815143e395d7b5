"""An attempt's life: placed, started, ended, returned, cancelled."""

import json
from typing import Any

import pytest
from tests.support.brokerage import ME, Brokerage, memory
from tests.support.building import BOOT, WORKER, units

from grass.broker.core.attempts import placing
from grass.broker.core.calls import Cancel, Enqueue, NewJob, Prune
from grass.errors import ProtocolError
from grass.link.messages import (
    RECALLED,
    Exited,
    Forget,
    Hello,
    Recall,
    Report,
    Resync,
    Returned,
    Start,
    Started,
    Stop,
)
from grass.model.amount_text import WHOLE
from grass.model.jobs.lifecycle import AttemptState, JobState
from grass.model.jobs.spec import JobPatch


def test_a_start_leaves_only_together_with_its_committed_attempt(
    broker: Brokerage,
) -> None:
    broker.step(Enqueue(ME, [NewJob(("true",), JobPatch())]))
    broker.core.decide(1.0)
    effects = broker.core.take()
    ((worker, start),) = effects.outbox
    assert isinstance(start, Start)
    assert worker == WORKER
    attempt = effects.changes.attempts[1, 1]
    assert attempt.state is AttemptState.STARTING
    assert start.allocation == attempt.allocation == {"cpu": {"0": WHOLE}}
    assert effects.changes.jobs[1].state is JobState.RUNNING
    assert start.attempt == f"{broker.state.cluster}.1.1"


def test_a_job_waits_until_its_units_are_free(broker: Brokerage) -> None:
    first, second, third = (broker.enqueue() for _ in range(3))
    assert set(broker.state.attempts) == {first, second}
    broker.exit(second)
    assert broker.started_jobs() == [third]


def test_started_is_noted_with_its_process(broker: Brokerage) -> None:
    job = broker.enqueue()
    broker.start(job, pid=42)
    (attempt,) = broker.job(job).attempts
    assert (attempt.state, attempt.pid) == (AttemptState.RUNNING, 42)
    assert attempt.output == "/out"


@pytest.mark.parametrize(
    ("ended", "state"),
    [
        ({"exit_code": 0}, JobState.SUCCEEDED),
        ({"exit_code": 3}, JobState.FAILED),
        ({"signal": 9}, JobState.FAILED),
        ({"reason": "no such program"}, JobState.FAILED),
        ({"exit_code": 0, "reason": "output was full"}, JobState.FAILED),
        ({"reason": "keeper killed", "lost": True}, JobState.LOST),
    ],
)
def test_an_end_decides_the_jobs_state(
    broker: Brokerage, ended: dict[str, Any], state: JobState
) -> None:
    job = broker.enqueue()
    broker.start(job)
    message = Exited(broker.name(job), broker.now_us, output_bytes=5, **ended)
    broker.hear(message)
    assert broker.said(Forget) == [Forget([message.attempt])]
    found = broker.job(job)
    assert found.job.state is state
    assert found.job.exit_code == ended.get("exit_code")
    assert found.job.signal == ended.get("signal")
    assert found.job.reason == ended.get("reason")
    assert found.attempts[0].finished_at == broker.now_us
    assert broker.state.totals.output_bytes == 5
    assert broker.state.scheduler.free(WORKER) == {"cpu": {"0": WHOLE, "1": WHOLE}}


def test_a_loss_at_an_unknown_time_is_noted_now_and_not_long_ago(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    broker.hear(Exited(broker.name(job), 0, lost=True))
    assert broker.job(job).job.finished_at == broker.now_us


def test_an_end_without_a_start_counts_too(broker: Brokerage) -> None:
    job = broker.enqueue()
    broker.exit(job, 0)
    assert broker.job_state(job) is JobState.SUCCEEDED


def test_an_exit_reported_twice_is_forgotten_twice_and_counted_once(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    message = Exited(broker.name(job), broker.now_us, 1, output_bytes=7)
    broker.hear(message)
    broker.hear(Exited(message.attempt, broker.now_us, 0))
    assert broker.said(Forget)
    assert broker.job(job).job.exit_code == 1
    assert broker.state.totals.output_bytes == 7


def test_exits_of_one_batch_are_forgotten_with_one_message(broker: Brokerage) -> None:
    names = [broker.name(broker.enqueue()) for _ in range(2)]
    for name in names:
        broker.step_hear(Exited(name, broker.now_us, 0))
    broker.flush()
    assert broker.said(Forget) == [Forget(names)]


def test_stale_attempts_change_nothing(broker: Brokerage) -> None:
    job = broker.enqueue()
    before = memory(broker.state)
    for stale in (broker.name(job, 7), f"{'f' * 16}.{job}.1", broker.name(99, 1)):
        broker.hear(Started(stale, 5, broker.now_us))
        broker.hear(Exited(stale, broker.now_us, 1))
        broker.hear(Returned(stale, "in use"))
    assert memory(broker.state) == before
    assert broker.job_state(job) is JobState.RUNNING


def test_a_name_that_is_no_attempt_is_refused(broker: Brokerage) -> None:
    with pytest.raises(ProtocolError):
        broker.hear(Exited("nonsense", 0))
    with pytest.raises(ProtocolError):
        broker.hear(Report("a", {}, running=True))


def test_a_returned_attempt_is_placed_anew(broker: Brokerage) -> None:
    job = broker.enqueue()
    broker.hear(Returned(broker.name(job), "cpu 0 is given out already"))
    assert broker.said(Resync)
    assert not broker.started_jobs()
    broker.hello()
    assert broker.started_jobs() == [job]
    assert broker.job(job).attempts[-1].state is AttemptState.STARTING


def test_a_cancelled_job_that_is_returned_does_not_start_again(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    broker.cancel(job)
    broker.hear(Returned(broker.name(job), "in use"))
    assert broker.job_state(job) is JobState.CANCELLED
    assert not broker.started_jobs()


def test_cancelling_a_queued_job_ends_it_at_once(broker: Brokerage) -> None:
    broker.pause()
    job = broker.enqueue()
    assert broker.cancel(job) == [job]
    assert broker.job_state(job) is JobState.CANCELLED
    broker.resume()
    assert not broker.started_jobs()


def test_cancelling_a_running_job_stops_it_and_it_ends_cancelled(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    broker.start(job)
    broker.call(Cancel(ME, [job], 2.5, 2))
    assert broker.said(Stop) == [Stop(broker.name(job), 2.5, 2)]
    since = broker.job(job).job.stopping_since
    assert since is not None
    broker.cancel(job)
    assert broker.said(Stop) == [Stop(broker.name(job), 15.0, 15)]
    assert broker.job(job).job.stopping_since == since
    broker.exit(job, 0)
    assert broker.job_state(job) is JobState.CANCELLED


def test_cancelling_what_has_ended_touches_nothing(broker: Brokerage) -> None:
    job = broker.enqueue()
    broker.exit(job)
    assert broker.cancel(job, 99) == []
    assert broker.job_state(job) is JobState.SUCCEEDED


def test_a_cancelled_job_whose_fate_is_unknown_is_lost(broker: Brokerage) -> None:
    job = broker.enqueue()
    broker.cancel(job)
    broker.exit(job, lost=True)
    assert broker.job_state(job) is JobState.LOST


def test_pruned_jobs_leave_no_trace_in_the_sums(broker: Brokerage) -> None:
    done, kept = broker.enqueue(), broker.enqueue()
    broker.exit(done, output_bytes=10)
    broker.call(Prune(ME, [done, kept], wanted=[done, kept]))
    assert not broker.store.details([done])
    assert broker.job_state(kept) is JobState.RUNNING
    assert broker.state.totals.output_bytes == 0


def test_an_environment_survives_a_prune_in_the_batch_of_a_refused_call(
    broker: Brokerage,
) -> None:
    done = broker.enqueue()
    broker.exit(done)
    broker.step(Prune(ME, [done], wanted=[done]))
    impossible = JobPatch(request=(("gpu", 1),))
    with pytest.raises(Exception, match="gpu"):
        broker.step(Enqueue(ME, [NewJob(("x",), impossible)], None, {"A": "1"}))
    broker.flush()
    broker.call(Enqueue(ME, [NewJob(("x",), JobPatch())], None, {"A": "1"}))
    broker.restart()
    broker.hello()
    assert broker.said(Start)[0].base_env == {"A": "1"}


def test_the_journal_tells_how_each_attempt_ended(broker: Brokerage) -> None:
    broker.enqueue("true", retries=1)
    for code in (3, 0):
        broker.start(1)
        broker.exit(1, code)
    lines = broker.store.events(0, 100, 1, ("finished",))
    ends = [(line.attempt, json.loads(line.data)["state"]) for line in lines]
    assert ends == [(1, "failed"), (2, "succeeded")]


def test_a_start_of_a_job_cancelled_in_its_batch_is_recalled(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    hello = Hello(WORKER, "desk", BOOT, units(broker.found), [], [])
    broker.step_hear(hello)
    broker.step(Cancel(ME, [job]))
    sent = [
        placing.unless_obsolete(broker.state, worker, message)
        for worker, message in broker.core.take().outbox
    ]
    assert not any(isinstance(message, Start) for message in sent)
    placed_at = broker.state.attempts[job].started_at
    assert Recall([broker.name(job)], [placed_at]) in sent


@pytest.mark.parametrize("missing", ["/srv/code", ""])
def test_a_start_that_was_returned_in_its_batch_is_recalled_where_it_was(
    broker: Brokerage, missing: str
) -> None:
    job = broker.enqueue(worker=None)
    name, placed_at = broker.name(job), broker.state.attempts[job].started_at
    if missing:
        broker.join("farm", "{cpu:2}")
    broker.step_hear(Hello(WORKER, "desk", BOOT, units(broker.found), [], []))
    reason = "could not start: no folder" if missing else RECALLED
    broker.step_hear(Returned(name, reason, placed_at, missing))
    broker.core.decide(1.0)
    sent = [
        (worker, placing.unless_obsolete(broker.state, worker, message))
        for worker, message in broker.core.take().outbox
    ]
    assert (WORKER, Recall([name], [placed_at])) in sent
    now = broker.state.attempts[job]
    assert (broker.name(job), now.worker) == (name, "farm" if missing else WORKER)
    starts = [(worker, m.placed_at) for worker, m in sent if isinstance(m, Start)]
    assert starts == [(now.worker, now.started_at)]


def test_a_late_answer_about_a_number_that_is_used_again_changes_nothing(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    name = broker.name(job)
    (first,) = broker.said(Start)
    broker.hear(Returned(name, RECALLED, first.placed_at))
    (second,) = broker.said(Start)
    assert (second.attempt, second.placed_at > first.placed_at) == (name, True)
    broker.hear(Returned(name, RECALLED, first.placed_at))
    assert broker.job_state(job) is JobState.RUNNING
    assert broker.state.attempts[job].started_at == second.placed_at
    broker.hear(Started(name, 7, broker.now_us))
    # An attempt that runs cannot be given back, whatever an older worker leaves out.
    broker.hear(Returned(name, RECALLED))
    assert broker.job_state(job) is JobState.RUNNING
