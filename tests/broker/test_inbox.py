"""The broker's inbox: callers and workers wait in one line, and are counted apart."""

import pytest
from tests.support.building import BOOT, units

from grass.broker.core import inbox as module
from grass.broker.core.calls import AnyCall, Found, FromWorker, Rerun, TimerFired
from grass.broker.core.inbox import Inbox
from grass.errors import Busy
from grass.link.messages import Exited, Hello


def said_hello(worker: str = "farm") -> FromWorker:
    return FromWorker(worker, Hello(worker, worker, BOOT, units("{cpu:1}"), [], []))


def said_end(worker: str = "farm") -> FromWorker:
    return FromWorker(worker, Exited("a", 5, 0))


def drained(inbox: Inbox) -> list[AnyCall]:
    taken = []
    while inbox:
        taken.append(inbox.take()[0])
    return taken


def rerun(job: int) -> Rerun:
    return Rerun("uid:1000", [job], wanted=[job])


def test_what_came_first_is_taken_first() -> None:
    inbox = Inbox()
    calls: list[AnyCall] = [said_hello(), said_end(), TimerFired(), said_end("lab")]
    for call in calls:
        inbox.put(call, None)
    assert drained(inbox) == calls
    assert not inbox


def test_of_the_hellos_of_a_worker_the_last_counts() -> None:
    inbox = Inbox()
    other, ended, last = said_hello("lab"), said_end(), said_hello()
    for call in (said_hello(), said_hello(), other, ended, said_hello(), last):
        inbox.put(call, None)
    assert drained(inbox) == [other, ended, last]
    assert inbox.waiting_from("farm") == inbox.waiting_from("lab") == 0
    inbox.put(again := said_hello(), None)
    assert drained(inbox) == [again]


def test_the_words_of_workers_are_counted_and_take_no_room_from_callers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "MOST_WAITING_CALLS", 2)
    inbox = Inbox()
    for _ in range(9):
        inbox.put(said_end(), None)
    assert (inbox.waiting_from("farm"), inbox.waiting_from("lab")) == (9, 0)
    inbox.put(TimerFired(), "first")
    inbox.put(TimerFired(), "second")
    with pytest.raises(Busy):
        inbox.put(TimerFired(), "third")
    inbox.put(said_end(), None)
    for _ in range(10):
        inbox.take()
    inbox.put(TimerFired(), "third")
    assert inbox.waiting_from("farm") == 1


def test_calls_that_are_given_up_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_WAITING_CALLS", 1)
    inbox = Inbox()
    inbox.put(rerun(1), "reply")
    assert [reply for _, reply in inbox.give_up_unread()] == ["reply"]
    inbox.put(TimerFired(), "another")
    assert len(drained(inbox)) == 1


def test_jobs_are_read_before_a_call_is_taken_and_again_after_a_commit() -> None:
    inbox, first, second = Inbox(), rerun(1), rerun(2)
    for call in (first, second):
        inbox.put(call, "reply")
    assert inbox.unread(1) == [first]
    assert not inbox.can_take
    for one in inbox.unread(9):
        one.found = Found()
        inbox.was_read()
    assert inbox.can_take
    assert inbox.take()[0] is first
    inbox.read_again()
    assert not inbox.can_take
    inbox.put_back(first, "reply")
    assert inbox.unread(9) == [first, second]
