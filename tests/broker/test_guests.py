"""Guests: placed on one worker as all jobs are, and given back without a signal."""

from typing import Any

from tests.support.brokerage import ME, Brokerage
from tests.support.building import WORKER

from grass.broker.core.calls import Enqueue, GiveBackGuest, NewJob
from grass.errors import Refused, UsageError
from grass.keeper.exit_reasons import GUEST_ENDED, GUEST_GAVE_UP
from grass.link.messages import Exited, GiveBack, Start, Stop
from grass.model.jobs.lifecycle import JobState
from grass.model.resources import request_from

GUEST = (4711, 99)


def enter(broker: Brokerage, require: str = "{cpu:2}", **fields: Any) -> int:
    request = request_from(require)
    patch = broker.patch(guest=GUEST, worker=WORKER, request=request, **fields)
    return int(broker.call(Enqueue(ME, [NewJob((), patch, name="fit")])).first)


def give_back(broker: Brokerage, job: int, code: int | None = 0) -> None:
    broker.call(GiveBackGuest(ME, job, code))


def messages(broker: Brokerage, kind: type) -> list[Any]:
    return [message for _, message in broker.sent if isinstance(message, kind)]


def test_start_of_a_guest_names_its_process(broker: Brokerage) -> None:
    enter(broker)
    (start,) = messages(broker, Start)
    assert (start.guest, start.words, start.name) == (GUEST, (), "fit")


def test_guest_that_gives_back_has_ended_once_its_worker_says_so(
    broker: Brokerage,
) -> None:
    job = enter(broker)
    broker.start(job)
    give_back(broker, job, 3)
    assert messages(broker, GiveBack) == [GiveBack(broker.name(job), 3)]
    assert not messages(broker, Stop)
    assert broker.state.jobs[job].state is JobState.RUNNING
    broker.exit(job, 3)
    (ended,) = broker.store.outcomes([job])
    assert (ended.state, ended.exit_code) == (JobState.FAILED, 3)


def test_give_back_that_the_worker_missed_is_repeated(broker: Brokerage) -> None:
    job = enter(broker)
    broker.start(job)
    give_back(broker, job, 5)
    broker.restart()
    broker.hello(running=[broker.report(job)])
    assert messages(broker, GiveBack) == [GiveBack(broker.name(job), 5)]
    assert not messages(broker, Stop)


def test_guest_that_gives_up_while_it_starts_never_begins(broker: Brokerage) -> None:
    job = enter(broker)
    give_back(broker, job, 130)
    broker.restart()
    broker.hello()
    assert [type(message) for _, message in broker.sent][-2:] == [Start, GiveBack]
    broker.hear(Exited(broker.name(job), broker.now_us, reason=GUEST_GAVE_UP))
    (ended,) = broker.store.outcomes([job])
    assert ended.state is JobState.CANCELLED


def test_guest_that_gives_up_while_it_waits_is_cancelled(broker: Brokerage) -> None:
    first, second = enter(broker), enter(broker)
    give_back(broker, second)
    (ended,) = broker.store.outcomes([second])
    assert (ended.state, ended.reason) == (JobState.CANCELLED, GUEST_GAVE_UP)
    give_back(broker, second)
    broker.start(first)
    broker.exit(first)
    assert not broker.started_jobs()


def test_process_that_is_gone_ends_only_its_wait(broker: Brokerage) -> None:
    first, second = enter(broker), enter(broker)
    for job in (first, second):
        give_back(broker, job, None)
    (ended,) = broker.store.outcomes([second])
    assert ended.state is JobState.CANCELLED
    broker.start(first)
    give_back(broker, first, None)
    assert not messages(broker, GiveBack)
    assert broker.state.jobs[first].state is JobState.RUNNING


def test_guest_whose_process_died_has_failed(broker: Brokerage) -> None:
    job = enter(broker)
    broker.start(job)
    broker.hear(Exited(broker.name(job), broker.now_us, reason=GUEST_ENDED))
    (ended,) = broker.store.outcomes([job])
    assert (ended.state, ended.reason) == (JobState.FAILED, GUEST_ENDED)


def test_only_a_guest_gives_back(broker: Brokerage) -> None:
    job = broker.enqueue()
    said = broker.refused(Refused, lambda: broker.call(GiveBackGuest(ME, job)))
    assert "is no guest" in said


def test_guest_has_no_command_and_gets_none(broker: Brokerage) -> None:
    broker.enqueue(require="{cpu:2}")
    job = enter(broker)
    edit = lambda: broker.edit(job, words=("true",))  # noqa: E731
    assert "a guest has no command" in broker.refused(UsageError, edit)
    broker.edit(job, priority=5)
    assert broker.state.jobs[job].priority == 5


def test_guest_is_not_run_again(broker: Brokerage) -> None:
    job = enter(broker)
    broker.start(job)
    broker.exit(job)
    said = broker.refused(Refused, lambda: broker.rerun(job))
    assert "guest" in said


def test_guests_among_others_are_left_alone_by_rerun(broker: Brokerage) -> None:
    guest, job = enter(broker), broker.enqueue()
    for one in (guest, job):
        broker.start(one)
        broker.exit(one)
    done = broker.rerun(guest, job)
    assert done.jobs == [job]
    assert done.warnings == [f"job {guest} was a guest of its process"]


def test_guest_stays_on_its_own_machine(broker: Brokerage) -> None:
    broker.join("other")
    broker.enqueue(require="{cpu:2}", worker=WORKER)
    job = enter(broker)
    move = lambda: broker.edit(job, worker="other")  # noqa: E731
    assert "stays where its process is" in broker.refused(Refused, move)
