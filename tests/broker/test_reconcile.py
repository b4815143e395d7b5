"""After a restart of either side: what both know goes on, and nothing is guessed."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.support.brokerage import Brokerage
from tests.support.building import BOOT, WORKER

from grass.broker.core.calls import WorkerGone
from grass.errors import Refused
from grass.link.messages import (
    Exited,
    Forget,
    KnownUnits,
    Recall,
    Report,
    Returned,
    Search,
    Start,
    Started,
    Stop,
    Welcome,
)
from grass.model.amount_text import WHOLE
from grass.model.jobs.lifecycle import AttemptState, JobState

MakeBroker = Callable[[str], Brokerage]
FOREIGN = f"{'f' * 16}.7.1"


@pytest.fixture
def running(broker: Brokerage) -> int:
    job = broker.enqueue()
    broker.start(job)
    return job


def test_a_worker_is_welcomed_and_told_its_units_first(broker: Brokerage) -> None:
    broker.restart()
    broker.hello()
    welcome, has = (message for _, message in broker.sent)
    expected = Welcome(broker.state.cluster, heeds_readiness=True, heeds_withheld=True)
    assert welcome == expected
    assert has == KnownUnits({"cpu": {"0": WHOLE, "1": WHOLE}})


def test_units_are_held_until_the_worker_is_back(
    broker: Brokerage, running: int
) -> None:
    broker.restart()
    waiting = broker.enqueue(require="{cpu:2}")
    assert not broker.started_jobs()
    broker.hello(running=[broker.report(running)])
    assert not broker.started_jobs()
    broker.exit(running)
    assert broker.started_jobs() == [waiting]


def test_a_running_attempt_is_adopted(broker: Brokerage, running: int) -> None:
    broker.restart()
    broker.hello(running=[broker.report(running, pid=77, output="/new")])
    assert broker.job_state(running) is JobState.RUNNING
    (attempt,) = broker.job(running).attempts
    assert (attempt.pid, attempt.output) == (77, "/new")
    assert not broker.started_jobs()


def test_a_start_whose_process_began_meanwhile_is_adopted_as_running(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    broker.restart()
    broker.hello(running=[broker.report(job)])
    assert broker.job(job).attempts[0].state is AttemptState.RUNNING


def test_a_start_the_worker_knows_of_but_has_not_begun_goes_on(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    broker.restart()
    broker.hello(running=[broker.report(job, running=False, pid=None, started_at=None)])
    assert broker.job(job).attempts[0].state is AttemptState.STARTING
    assert not broker.started_jobs()


def test_an_exit_that_came_meanwhile_is_recorded(
    broker: Brokerage, running: int
) -> None:
    ended = Exited(broker.name(running), broker.now_us, 3)
    broker.restart()
    broker.hello(exited=[ended])
    assert broker.job(running).job.exit_code == 3
    assert broker.said(Forget) == [Forget([ended.attempt])]


def test_a_start_that_the_worker_never_saw_is_sent_again(broker: Brokerage) -> None:
    job = broker.enqueue()
    broker.restart()
    broker.hello()
    (start,) = broker.said(Start)
    assert start.attempt == broker.name(job, 1)
    assert len(broker.job(job).attempts) == 1


def test_a_cancelled_start_that_the_worker_never_saw_ends_cancelled(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    broker.cancel(job)
    broker.restart()
    broker.hello()
    # Its start may be under way still: only the answer to a recall is sure.
    assert [one.attempt for one in broker.said(Stop)] == [broker.name(job)]
    assert [one.attempts for one in broker.said(Recall)] == [[broker.name(job)]]
    assert broker.job_state(job) is JobState.RUNNING
    broker.hear(Returned(broker.name(job), "recalled"))
    assert broker.job_state(job) is JobState.CANCELLED
    assert not broker.started_jobs()


def test_a_running_attempt_that_the_worker_no_longer_knows_is_lost(
    broker: Brokerage, running: int
) -> None:
    broker.restart()
    broker.hello()
    found = broker.job(running)
    assert found.job.state is JobState.LOST
    assert found.job.exit_code is None
    assert found.attempts[0].state is AttemptState.LOST
    assert not broker.started_jobs()


def test_a_running_attempt_that_a_worker_has_no_record_of_is_searched_for(
    broker: Brokerage, running: int
) -> None:
    name = broker.name(running)
    for _ in range(2):
        broker.restart()
        broker.hello(searches=True)
        (search,) = broker.said(Search)
        assert (search.attempt, search.grace_s) == (name, 15.0)
        assert search.allocation == {"cpu": {"0": WHOLE}}
        assert broker.job_state(running) is JobState.RUNNING
    broker.hear(Exited(name, broker.now_us, lost=True, reason="nothing is left of it"))
    assert broker.job_state(running) is JobState.LOST


@pytest.mark.parametrize("started", [True, False])
def test_attempts_of_another_boot_are_lost(broker: Brokerage, started: bool) -> None:
    job = broker.enqueue()
    if started:
        broker.start(job)
    broker.restart()
    broker.hello(boot="boot-2")
    assert broker.job_state(job) is JobState.LOST
    assert "restarted" in (broker.job(job).job.reason or "")
    assert broker.state.scheduler.free(WORKER) == {"cpu": {"0": WHOLE, "1": WHOLE}}


def test_a_stop_that_was_missed_is_repeated(broker: Brokerage, running: int) -> None:
    broker.cancel(running)
    broker.restart()
    broker.hello(running=[broker.report(running)])
    assert [stop.attempt for stop in broker.said(Stop)] == [broker.name(running)]
    broker.hello(running=[broker.report(running, stopping=True)])
    assert not broker.said(Stop)


def test_an_attempt_of_ours_that_we_do_not_know_runs_on_and_holds_its_units(
    broker: Brokerage,
) -> None:
    unknown = f"{broker.state.cluster}.99.1"
    broker.hello(running=[Report(unknown, {"cpu": {"0": WHOLE}}, running=True)])
    assert not broker.said(Stop)
    assert broker.state.scheduler.free(WORKER)["cpu"]["0"] == 0
    broker.hear(Exited(unknown, broker.now_us, 0))
    assert broker.state.scheduler.free(WORKER)["cpu"]["0"] == WHOLE


def test_an_attempt_that_we_do_not_know_and_that_never_started_frees_its_units(
    broker: Brokerage,
) -> None:
    unknown = f"{broker.state.cluster}.99.1"
    broker.hello(running=[Report(unknown, {"cpu": {"0": WHOLE}}, running=False)])
    assert [recall.attempts for recall in broker.said(Recall)] == [[unknown]]
    broker.hear(Returned(unknown, "recalled"))
    assert broker.state.scheduler.free(WORKER)["cpu"]["0"] == WHOLE
    assert not broker.state.foreign


def test_an_attempt_of_another_database_is_left_alone_and_holds_its_units(
    broker: Brokerage,
) -> None:
    report = Report(FOREIGN, {"cpu": {"0": WHOLE}, "gone": {"0": 1}}, running=True)
    broker.hello(running=[report])
    assert not broker.said(Stop)
    first, second = broker.enqueue(), broker.enqueue()
    assert broker.state.attempts[first].allocation == {"cpu": {"1": WHOLE}}
    assert broker.job_state(second) is JobState.QUEUED
    broker.hello(running=[report, broker.report(first)])
    assert broker.job_state(second) is JobState.QUEUED
    broker.hear(Exited(FOREIGN, broker.now_us, 0))
    assert not broker.said(Forget)
    assert broker.started_jobs() == [second]


def test_an_exit_of_another_database_is_left_for_its_own_broker(
    broker: Brokerage,
) -> None:
    broker.hello(exited=[Exited(FOREIGN, broker.now_us, 0)])
    assert not broker.said(Forget)
    broker.hello(exited=[Exited(broker.name(99, 1), broker.now_us, 0)])
    assert broker.said(Forget) == [Forget([broker.name(99, 1)])]


def test_a_foreign_attempt_that_is_gone_from_the_report_frees_its_units(
    broker: Brokerage,
) -> None:
    report = Report(FOREIGN, {"cpu": {"0": WHOLE, "1": WHOLE}}, running=True)
    broker.hello(running=[report])
    job = broker.enqueue()
    assert not broker.started_jobs()
    broker.hello(boot="boot-2")
    assert broker.started_jobs() == [job]


def test_a_foreign_attempt_never_pushes_the_books_below_zero(
    broker: Brokerage, running: int
) -> None:
    report = Report(FOREIGN, {"cpu": {"0": WHOLE, "1": 5000}}, running=True)
    broker.hello(running=[broker.report(running), report])
    assert broker.state.scheduler.free(WORKER) == {"cpu": {"0": 0, "1": 5000}}


def test_an_attempt_that_we_do_not_know_holds_what_is_given_back_for_its_sake(
    broker: Brokerage,
) -> None:
    first, second = broker.enqueue(), broker.enqueue()
    stray = Report(broker.name(99, 1), {"cpu": {"0": WHOLE}}, running=True)
    broker.hello(running=[stray])
    placed_at = broker.state.attempts[first].started_at
    reason = "cpu 0 is given out already"
    broker.hear(Returned(broker.name(first), reason, placed_at))
    broker.hello(running=[stray, broker.report(second)])
    assert broker.job_state(first) is JobState.QUEUED
    broker.hear(Exited(stray.attempt, broker.now_us, 0))
    assert broker.started_jobs() == [first]


def test_a_worker_that_is_gone_gets_no_jobs_and_keeps_its_own(
    broker: Brokerage, running: int
) -> None:
    broker.call(WorkerGone(WORKER))
    waiting = broker.enqueue()
    assert not broker.started_jobs()
    assert broker.job_state(running) is JobState.RUNNING
    broker.hello(running=[broker.report(running)])
    assert broker.started_jobs() == [waiting]


def test_a_unit_that_is_gone_after_a_restart_is_not_offered(
    broker_of: MakeBroker,
) -> None:
    broker = broker_of("{cpu:2}")
    broker.restart()
    broker.found = "{cpu:1}"
    broker.hello()
    broker.enqueue()
    waiting = broker.enqueue()
    assert broker.job_state(waiting) is JobState.QUEUED


def test_two_workers_may_both_have_an_attempt_that_is_not_ours(
    broker: Brokerage,
) -> None:
    report = Report(FOREIGN, {"cpu": {"0": WHOLE}}, running=True)
    for worker in ("one", "two"):
        broker.join(worker, "{cpu:1}", running=[report])
    held = [broker.state.scheduler.free(worker) for worker in ("one", "two")]
    assert held == [{"cpu": {"0": 0}}, {"cpu": {"0": 0}}]
    broker.hear(Exited(FOREIGN, broker.now_us, 0), "one")
    held = [broker.state.scheduler.free(worker) for worker in ("one", "two")]
    assert held == [{"cpu": {"0": WHOLE}}, {"cpu": {"0": 0}}]


@pytest.fixture
def farm_job(broker: Brokerage) -> int:
    """Have a job whose attempt runs on an instance of a worker that is away."""
    broker.join("farm", "{cpu:4}", instance="one")
    job = broker.enqueue(worker="farm", retry_lost=3)
    broker.hear(Started(broker.name(job), 7, broker.now_us), "farm", "one")
    broker.leave("farm")
    return job


@pytest.mark.parametrize("boot", [BOOT, "boot-2"])
@pytest.mark.parametrize("instance", ["two", ""])
@pytest.mark.parametrize("state", ["running", "exited", "unknown"])
@pytest.mark.parametrize("restarted", [False, True])
def test_a_second_instance_is_refused_while_attempts_of_the_first_may_run(
    broker: Brokerage,
    farm_job: int,
    boot: str,
    instance: str,
    state: str,
    restarted: bool,
) -> None:
    lost = Exited(broker.name(farm_job), broker.now_us, reason="reboot", lost=True)
    said: dict[str, Any] = {"boot": boot, "instance": instance}
    said["running"] = [broker.report(farm_job)] if state == "running" else []
    said["exited"] = [lost] if state == "exited" else []
    if restarted:
        broker.restart()
    told = broker.refused(Refused, lambda: broker.join("farm", "{cpu:4}", **said))
    assert "`grass workers forget farm`" in told
    broker.hear(lost, "farm", instance)
    assert broker.state.attempts[farm_job].number == 1
    assert broker.job_state(farm_job) is JobState.RUNNING
    reports = [broker.report(farm_job)]
    broker.join("farm", "{cpu:4}", instance="one", running=reports)
    broker.hear(Exited(broker.name(farm_job), broker.now_us, 0), "farm", "one")
    assert broker.job_state(farm_job) is JobState.SUCCEEDED


def test_a_second_instance_is_served_once_the_attempts_of_the_first_have_ended(
    broker: Brokerage, farm_job: int
) -> None:
    broker.join("farm", "{cpu:4}", instance="one", boot="boot-2")
    assert broker.state.attempts[farm_job].number == 2
    broker.hear(Exited(broker.name(farm_job), broker.now_us, 0), "farm", "one")
    broker.leave("farm")
    broker.join("farm", "{cpu:4}", instance="two")
    assert broker.state.workers["farm"].instance == "two"


def test_a_second_instance_is_served_after_the_worker_was_forgotten(
    broker: Brokerage, farm_job: int
) -> None:
    broker.forget("farm")
    assert broker.job_state(farm_job) is JobState.HELD
    broker.join("farm", "{cpu:4}", instance="two")
    assert broker.state.workers["farm"].instance == "two"
