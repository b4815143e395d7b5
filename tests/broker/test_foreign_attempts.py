"""Attempts that a restored database knows nothing of run on until a person acts."""

import json
from typing import Any

import pytest
from tests.support.brokerage import ME, Brokerage
from tests.support.building import WORKER

from grass.broker.core.attempts import foreign
from grass.broker.core.attempts.foreign_calls import EndForeign, KeepForeign
from grass.errors import NotFound, Refused
from grass.link.messages import (
    RECALLED,
    Exited,
    Forget,
    Recall,
    Report,
    Returned,
    Start,
    Started,
    Stop,
)
from grass.model.amount_text import WHOLE
from grass.model.jobs.lifecycle import JobState
from grass.model.restored import RESTORED_LAST_JOB
from grass.queries.job_documents import why_waiting

OTHER = f"{'f' * 16}.5.1"
CORE = {"cpu": {"0": WHOLE}}


def stray(broker: Brokerage, job: int, number: int = 1, **more: Any) -> Report:
    """Give what a worker reports of an attempt of the lost history."""
    fields = {"running": True, "pid": 9, "placed_at": broker.now_us, **more}
    return Report(broker.name(job, number), CORE, **fields)


def journal(broker: Brokerage, kind: str) -> list[dict[str, Any]]:
    """Read the lines of one kind."""
    return [json.loads(one.data) for one in broker.store.events(0, 1000, None, (kind,))]


def end(broker: Brokerage, attempts: list[str] | None = None) -> None:
    broker.call(EndForeign(ME, "desk", attempts or ["all"]))


def stopped(broker: Brokerage) -> list[tuple[str, float]]:
    return [(one.attempt, one.grace_s) for one in broker.said(Stop)]


def test_an_attempt_that_a_restored_database_does_not_have_is_never_stopped(
    broker: Brokerage,
) -> None:
    report = stray(broker, 99, title="train.py")
    for _ in range(2):
        broker.hello([report])
        assert not broker.said(Stop)
    broker.restart()
    broker.hello([report])
    assert not broker.said(Stop)
    assert broker.state.scheduler.free(WORKER)["cpu"]["0"] == 0


def test_one_line_of_the_journal_names_the_attempts_that_were_found(
    broker: Brokerage,
) -> None:
    reports = [stray(broker, job) for job in range(99, 99 + 2 * foreign.MAX_NAMED)]
    broker.hello(reports)
    broker.hello(reports)
    (line,) = journal(broker, "foreign-found")
    assert line["count"] == 2 * foreign.MAX_NAMED
    assert line["attempts"] == [one.attempt for one in reports[: foreign.MAX_NAMED]]
    assert (line["worker"], line["name"]) == (WORKER, "desk")


def test_its_exit_is_written_down_and_acknowledged(broker: Brokerage) -> None:
    report = stray(broker, 99)
    broker.hello([report])
    broker.hear(Exited(report.attempt, broker.now_us, 3))
    (line,) = journal(broker, "foreign-ended")
    assert (line["attempt"], line["exit_code"]) == (report.attempt, 3)
    assert broker.said(Forget) == [Forget([report.attempt])]
    assert broker.state.scheduler.free(WORKER)["cpu"]["0"] == WHOLE


def test_an_exit_that_came_while_the_broker_was_away_is_written_down_once(
    broker: Brokerage,
) -> None:
    name = broker.name(99, 1)
    broker.hello(exited=[Exited(name, broker.now_us, 3)])
    assert [line["attempt"] for line in journal(broker, "foreign-ended")] == [name]
    assert broker.said(Forget) == [Forget([name])]


def test_an_exit_that_is_stored_already_is_not_foreign(broker: Brokerage) -> None:
    job = broker.enqueue()
    name = broker.name(job)
    broker.exit(job)
    broker.hello(exited=[Exited(name, broker.now_us, 0)])
    assert not journal(broker, "foreign-ended")
    assert broker.said(Forget) == [Forget([name])]


def test_a_start_of_the_lost_history_that_has_not_begun_is_recalled(
    broker: Brokerage,
) -> None:
    report = stray(broker, 99, running=False, pid=None)
    broker.hello([report])
    assert broker.said(Recall) == [Recall([report.attempt], [report.placed_at])]
    assert not broker.said(Stop)
    assert not journal(broker, "foreign-found")
    broker.hear(Returned(report.attempt, RECALLED, report.placed_at))
    assert not broker.state.foreign


def test_a_job_goes_on_when_its_recalled_start_is_back(broker: Brokerage) -> None:
    job = broker.enqueue()
    old = stray(broker, job, 7, running=False, pid=None)
    broker.join("farm", "{cpu:4}", running=[old])
    at = broker.state.attempts[job].started_at
    broker.hear(Returned(broker.name(job), RECALLED, at))
    assert broker.job_state(job) is JobState.HELD
    broker.hear(Returned(old.attempt, RECALLED, old.placed_at), "farm")
    assert broker.started_jobs() == [job]


def test_one_that_began_before_it_was_recalled_is_foreign(broker: Brokerage) -> None:
    report = stray(broker, 99, running=False, pid=None)
    broker.hello([report])
    broker.hear(Started(report.attempt, 9, broker.now_us, placed_at=report.placed_at))
    assert len(journal(broker, "foreign-found")) == 1
    (found,) = broker.state.foreign.of(WORKER)
    assert (found.running, found.pid) == (True, 9)


def test_a_job_does_not_start_beside_its_attempt_of_the_lost_history(
    broker: Brokerage,
) -> None:
    first, second = broker.enqueue(require="{cpu:2}"), broker.enqueue()
    broker.hello([broker.report(first), stray(broker, second)])
    assert broker.job_state(second) is JobState.HELD
    assert "knows nothing of" in broker.why(second)
    assert broker.release(second).jobs == []
    broker.hear(Exited(broker.name(second, 1), broker.now_us, 0))
    broker.exit(first)
    assert broker.job_state(second) is JobState.HELD
    broker.release(second)
    assert broker.started_jobs() == [second]


def test_a_start_that_has_not_begun_is_taken_back_for_a_foreign_attempt(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    broker.join("farm", "{cpu:4}", running=[stray(broker, job, 7)])
    assert [one.attempts for one in broker.said(Recall)] == [[broker.name(job)]]
    at = broker.state.attempts[job].started_at
    broker.hear(Returned(broker.name(job), RECALLED, at))
    assert broker.job_state(job) is JobState.HELD
    assert not broker.said(Start)


def test_an_attempt_from_before_its_job_was_enqueued_holds_no_job_back(
    broker: Brokerage,
) -> None:
    broker.pause()
    job = broker.enqueue()
    broker.hello([stray(broker, job, placed_at=5)])
    broker.resume()
    assert broker.started_jobs() == [job]
    assert broker.state.attempts[job].number == 2


def test_a_worker_holds_no_job_back_that_could_not_run_there(
    broker: Brokerage,
) -> None:
    broker.pause()
    job = broker.enqueue(worker=WORKER)
    broker.join("liar", running=[stray(broker, job, 7)])
    broker.resume()
    assert broker.started_jobs() == [job]


def test_what_the_database_has_as_ended_is_stopped_with_its_jobs_grace(
    broker: Brokerage,
) -> None:
    broker.join("farm", "{cpu:4}")
    job = broker.enqueue(worker="farm", grace_s=7.0)
    report = broker.report(job)
    broker.hear(Started(report.attempt, 7, broker.now_us), "farm")
    broker.leave("farm")
    broker.forget("farm")
    assert broker.job_state(job) is JobState.LOST
    broker.join("farm", "{cpu:4}", running=[report])
    assert stopped(broker) == [(report.attempt, 7.0)]
    (line,) = journal(broker, "foreign-stopped")
    assert line["reason"] == foreign.ENDED_HERE
    assert not journal(broker, "foreign-found")


def test_the_same_name_on_another_worker_is_not_what_has_ended(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    report = broker.report(job)
    broker.exit(job)
    broker.join("farm", "{cpu:4}", running=[report])
    assert not broker.said(Stop)


def test_a_person_ends_those_that_are_named_with_the_usual_grace(
    broker: Brokerage,
) -> None:
    reports = [stray(broker, job) for job in (98, 99)]
    broker.hello(reports)
    end(broker, ["98.1"])
    assert stopped(broker) == [(reports[0].attempt, 15.0)]
    (line,) = broker.store.events(0, 1000, None, ("foreign-stopped",))
    assert line.actor == ME
    # The stop may not have arrived.
    broker.hello(reports)
    assert stopped(broker) == [(reports[0].attempt, 15.0)]
    end(broker)
    assert len(stopped(broker)) == 2


def test_what_is_kept_is_remembered_until_it_ends(broker: Brokerage) -> None:
    report = stray(broker, 99)
    broker.hello([report])
    broker.call(KeepForeign(ME, "desk", ["all"]))
    assert not broker.said(Stop)
    broker.restart()
    broker.hello([report])
    assert broker.state.workers[WORKER].kept_attempts == (report.attempt,)
    broker.hear(Exited(report.attempt, broker.now_us, 0))
    assert broker.state.workers[WORKER].kept_attempts == ()


def test_an_attempt_that_is_not_foreign_cannot_be_ended_so(broker: Brokerage) -> None:
    job = broker.enqueue()
    said = broker.refused(NotFound, lambda: end(broker, [f"{job}.1"]))
    assert "`grass workers foreign`" in said


def test_those_of_a_worker_that_is_away_are_not_ended(broker: Brokerage) -> None:
    broker.hello([stray(broker, 99)])
    broker.leave()
    broker.refused(Refused, lambda: end(broker))
    assert not broker.said(Stop)


@pytest.mark.parametrize("many", [foreign.MAX_READ + 5])
def test_a_worker_that_reports_any_number_of_jobs_has_a_bounded_number_read(
    broker: Brokerage, many: int
) -> None:
    reports = [stray(broker, job) for job in range(100, 100 + many)]
    broker.hello(reports)
    assert not broker.said(Stop)
    assert len(broker.state.foreign.of(WORKER)) == many


def test_a_job_that_runs_twice_at_a_time_is_named_in_the_journal_and_the_log(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    broker.restart()
    broker.hello([broker.report(job)])
    broker.join("lab", running=[stray(broker, job, 7)])
    lines = journal(broker, "foreign-found")
    assert [line["running_twice"] for line in lines] == [[job]]
    assert [one.job for one in broker.state.foreign.of("lab")] == [job]


def test_a_job_is_not_released_before_the_worker_of_its_attempt_has_reported(
    broker: Brokerage,
) -> None:
    broker.pause()
    job = broker.enqueue()
    broker.hello([stray(broker, job)])
    broker.restart()
    assert "`grass workers forget desk`" in broker.why(job)
    reply = broker.release(job)
    assert (reply.jobs, broker.job_state(job)) == ([], JobState.HELD)
    assert "`desk`" in reply.warnings[0]
    broker.hello()
    assert f"`grass release {job}`" in broker.why(job)
    assert broker.release(job).jobs == [job]
    assert not broker.reason(job)


def test_a_job_is_released_when_the_worker_of_its_attempt_was_forgotten(
    broker: Brokerage,
) -> None:
    broker.pause()
    job = broker.enqueue()
    broker.join("lab", running=[stray(broker, job, 7)])
    broker.restart()
    broker.hello()
    assert broker.release(job).jobs == []
    broker.forget("lab")
    assert broker.release(job).jobs == [job]


def test_all_are_those_of_this_cluster(broker: Brokerage) -> None:
    own = stray(broker, 99)
    other = Report(OTHER, CORE, running=True, pid=8, placed_at=broker.now_us)
    broker.hello([own, other])
    end(broker)
    assert [name for name, _ in stopped(broker)] == [own.attempt]
    end(broker, [OTHER])
    assert [name for name, _ in stopped(broker)] == [OTHER]


def test_one_that_its_worker_no_longer_has_is_in_the_journal(
    broker: Brokerage,
) -> None:
    report = stray(broker, 99)
    broker.hello([report])
    broker.hello()
    broker.hello()
    (line,) = journal(broker, "foreign-ended")
    assert line["attempt"] == report.attempt
    assert line["reason"] == "its worker no longer has it"


def restore(broker: Brokerage) -> None:
    """Have the broker begin with a database that `grass restore` has marked."""
    last = broker.state.last_job
    broker.state.batch.changes.meta[RESTORED_LAST_JOB] = str(last)
    broker.state.batch.urgent = True
    broker.state.restored_last_job = last
    broker.state.foreign.reported.clear()
    broker.flush()
    broker.restart()


def test_no_job_of_a_backup_starts_before_all_workers_have_reported(
    broker: Brokerage,
) -> None:
    broker.join("lab")
    broker.pause()
    job = broker.enqueue()
    restore(broker)
    broker.resume()
    broker.hello()
    assert broker.job_state(job) is JobState.QUEUED
    assert "`grass workers forget lab`" in str(waits(broker, job))
    broker.now_us += 1
    broker.join("lab", running=[stray(broker, job, 7)])
    assert broker.job_state(job) is JobState.HELD
    assert not broker.said(Start)
    assert broker.state.restored_last_job == 0
    later = broker.enqueue()
    assert broker.started_jobs() == [later]


def waits(broker: Brokerage, job: int) -> str | None:
    return why_waiting(broker.state.jobs[job], broker.state, 0.0, {})


def test_a_job_of_a_backup_starts_when_the_missing_worker_was_forgotten(
    broker: Brokerage,
) -> None:
    broker.join("lab")
    broker.pause()
    job = broker.enqueue()
    restore(broker)
    broker.hello()
    broker.resume()
    assert not broker.started_jobs()
    broker.restart()
    broker.hello()
    assert not broker.started_jobs()
    broker.forget("lab")
    assert broker.started_jobs() == [job]


def test_new_jobs_start_while_those_of_a_backup_are_held(broker: Brokerage) -> None:
    broker.join("lab")
    broker.pause()
    job = broker.enqueue()
    restore(broker)
    broker.hello()
    broker.resume()
    broker.hold(job)
    later = broker.enqueue()
    assert broker.started_jobs() == [later]
