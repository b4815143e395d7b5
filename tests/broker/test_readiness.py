"""A worker that says that it cannot start jobs gets none until it can."""

import pytest
from tests.support.brokerage import SECOND, Brokerage
from tests.support.building import BOOT, WORKER, units

from grass.broker.core.calls import FromWorker
from grass.errors import ProtocolError
from grass.link.messages import RECALLED, Hello, Readiness, Returned, Start
from grass.model.jobs.lifecycle import JobState

FULL = "no space left on device"


def kinds(broker: Brokerage, *wanted: str) -> list[str]:
    events = broker.store.events(0, 100, None, wanted)
    return [event.kind for event in events]


def test_nothing_is_placed_on_it_and_what_it_gives_back_waits(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    broker.hear(Readiness(FULL))
    broker.hear(Returned(broker.name(job), RECALLED))
    assert broker.job_state(job) is JobState.QUEUED
    later = broker.enqueue()
    assert broker.job_state(later) is JobState.QUEUED
    broker.hear(Readiness())
    assert broker.running() == [job, later]


def test_it_is_noted_once_for_each_change(broker: Brokerage) -> None:
    for reason in (FULL, FULL, "another", "", ""):
        broker.hear(Readiness(reason))
    changes = kinds(broker, "worker-unable", "worker-able")
    assert changes == ["worker-unable", "worker-able"]


def test_a_hello_tells_it_too(broker: Brokerage) -> None:
    broker.restart()
    broker.hear(Hello(WORKER, "desk", BOOT, units("{cpu:2}"), [], [], unable=FULL))
    job = broker.enqueue()
    assert broker.job_state(job) is JobState.QUEUED
    assert not broker.said(Start)
    broker.hello()
    assert broker.running() == [job]


def test_a_reason_that_is_no_line_of_text_is_refused(broker: Brokerage) -> None:
    for reason in ("x" * 2000, "\ud800"):
        with pytest.raises(ProtocolError):
            broker.step_hear(Readiness(reason))


def test_the_message_of_an_unknown_worker_changes_nothing(
    broker: Brokerage,
) -> None:
    broker.step(FromWorker("nobody", Readiness(FULL)))
    assert not broker.state.batch.changes


def test_a_worker_that_changes_its_mind_all_the_time_does_not_fill_the_journal(
    broker: Brokerage,
) -> None:
    for _ in range(50):
        broker.hear(Readiness(FULL))
        broker.hear(Readiness())
    # A step of this clock is a second: some 100 of them, of which 50 changed it.
    assert len(kinds(broker, "worker-unable", "worker-able")) <= 22
    assert not broker.state.workers[WORKER].unable


def test_a_worker_that_stays_unable_soon_after_the_last_time_is_noted_later(
    broker: Brokerage,
) -> None:
    for reason in (FULL, "", FULL):
        broker.hear(Readiness(reason))
    assert kinds(broker, "worker-unable", "worker-able")[-1] == "worker-able"
    due = broker.core.next_time()
    assert due is not None
    broker.pass_time((due - broker.now_us) / SECOND)
    assert kinds(broker, "worker-unable", "worker-able")[-1] == "worker-unable"
    assert broker.core.next_time() is None
