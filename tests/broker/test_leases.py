"""Workers that end their attempts when they are cut off: the broker only counts."""

from typing import Any

import pytest
from tests.support.brokerage import Brokerage

from grass.keeper.exit_reasons import CUT_OFF
from grass.link.messages import Exited, Start
from grass.model.jobs.lifecycle import JobState

LEASE_S = 30.0
GRACE_S = 15.0
OVER_S = LEASE_S + GRACE_S + 3.0 + 10.0
"""Lease, grace, a tenth of the lease, and ten seconds."""


@pytest.fixture
def leased(broker: Brokerage) -> Brokerage:
    """A worker without a lease, and `farm` with one."""
    broker.join("farm", "{cpu:4}", lease_s=LEASE_S, labels=("far",))
    return broker


def cut_off(broker: Brokerage, **settings: Any) -> tuple[int, float]:
    """Start a job on `farm` and cut it off; return it and the time of that."""
    job = broker.enqueue(labels=("far",), grace_s=GRACE_S, **settings)
    broker.leave("farm")
    return job, broker.now_us / 1e6


def pass_until(broker: Brokerage, seconds: float) -> None:
    # A look at the clock takes a second itself.
    broker.pass_time(seconds - 1.0 - broker.now_us / 1e6)


def test_an_attempt_is_lost_when_lease_grace_and_margin_are_over(
    leased: Brokerage,
) -> None:
    job, since_s = cut_off(leased)
    assert leased.core.wake_at() == pytest.approx(since_s + OVER_S)
    pass_until(leased, since_s + OVER_S - 0.1)
    assert leased.job_state(job) is JobState.RUNNING
    pass_until(leased, since_s + OVER_S + 1.0)
    assert leased.job_state(job) is JobState.LOST
    assert leased.reason(job) == "its worker was cut off for 59 s and has ended it"
    assert leased.core.wake_at() is None


def test_what_allows_it_runs_again_elsewhere(leased: Brokerage) -> None:
    job = leased.enqueue(worker="farm", retry_lost=1, grace_s=GRACE_S)
    leased.leave("farm")
    pass_until(leased, leased.now_us / 1e6 + OVER_S + 1.0)
    assert leased.states(job) == ["queued"]
    leased.edit(job, worker=None)
    assert leased.where(job) == "worker-1"
    assert leased.state.attempts[job].number == 2


def test_each_attempt_has_the_time_that_its_own_grace_takes(leased: Brokerage) -> None:
    quick = leased.enqueue(worker="farm", grace_s=0.0)
    slow, since_s = cut_off(leased)
    pass_until(leased, since_s + OVER_S - GRACE_S + 1.0)
    assert leased.states(quick, slow) == ["lost", "running"]
    assert leased.core.wake_at() == pytest.approx(since_s + OVER_S)


def test_a_worker_that_comes_back_in_time_goes_on(leased: Brokerage) -> None:
    job, since_s = cut_off(leased)
    pass_until(leased, since_s + OVER_S - 5.0)
    leased.join("farm", "{cpu:4}", lease_s=LEASE_S, running=[leased.report(job)])
    assert leased.core.wake_at() is None
    leased.pass_time(1000.0)
    assert leased.job_state(job) is JobState.RUNNING
    assert leased.state.attempts[job].number == 1


def test_a_late_report_of_an_attempt_that_was_replaced_changes_nothing(
    leased: Brokerage,
) -> None:
    job, since_s = cut_off(leased, retry_lost=1)
    first = leased.report(job)
    pass_until(leased, since_s + OVER_S + 1.0)
    leased.edit(job, labels=())
    assert leased.where(job) == "worker-1"
    ended = Exited(first.attempt, leased.now_us, 0)
    leased.join("farm", "{cpu:4}", lease_s=LEASE_S, exited=[ended], labels=("far",))
    assert leased.states(job) == ["running"]
    assert leased.state.attempts[job].number == 2
    assert not leased.said(Start)


def test_without_a_lease_nothing_is_ever_given_up(broker: Brokerage) -> None:
    broker.join("farm", "{cpu:4}")
    job = broker.enqueue(worker="farm")
    broker.leave("farm")
    assert broker.core.wake_at() is None
    broker.pass_time(1e6)
    assert broker.job_state(job) is JobState.RUNNING


def test_a_worker_that_gave_its_lease_up_is_waited_for(leased: Brokerage) -> None:
    job, _ = cut_off(leased)
    leased.join("farm", "{cpu:4}", running=[leased.report(job)])
    leased.leave("farm")
    leased.pass_time(1e6)
    assert leased.job_state(job) is JobState.RUNNING


def test_after_a_restart_of_the_broker_the_time_counts_anew(leased: Brokerage) -> None:
    job, since_s = cut_off(leased)
    pass_until(leased, since_s + OVER_S - 1.0)
    leased.restart()
    leased.pass_time()
    began_s = leased.now_us / 1e6
    assert leased.core.wake_at() == pytest.approx(began_s + OVER_S)
    pass_until(leased, began_s + OVER_S - 0.1)
    assert leased.job_state(job) is JobState.RUNNING
    pass_until(leased, began_s + OVER_S + 1.0)
    assert leased.job_state(job) is JobState.LOST


def test_an_end_by_the_lease_counts_as_a_loss_also_when_it_is_heard_of(
    leased: Brokerage,
) -> None:
    lost, _ = cut_off(leased)
    ended = Exited(leased.name(lost), leased.now_us, signal=15, reason=CUT_OFF)
    leased.join("farm", "{cpu:4}", lease_s=LEASE_S, exited=[ended])
    details = leased.job(lost)
    assert details.job.state is JobState.LOST
    assert (details.job.signal, details.job.reason) == (15, CUT_OFF)


def test_who_follows_a_lost_attempt_is_lost_too(leased: Brokerage) -> None:
    leased.join("small", "{cpu:1}", lease_s=LEASE_S)
    jobs = leased.prefetched("small")
    leased.leave("small")
    leased.pass_time(OVER_S + 5.0)
    assert leased.states(*jobs) == ["lost", "lost"]
