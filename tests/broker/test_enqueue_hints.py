"""What the caller of an enqueue is told besides the ids."""

from typing import Any

from tests.support.brokerage import Brokerage
from tests.support.building import WORKER


def hint(broker: Brokerage, **settings: Any) -> str:
    reply = broker.call(broker.new_job("true", **settings))
    text: str = reply.hint
    return text


def test_a_queue_that_starts_jobs_needs_no_words(broker: Brokerage) -> None:
    broker.create_queue("other", "{slot:1}")
    broker.pause("other")
    assert hint(broker) == ""


def test_a_paused_queue_is_told_with_the_command_that_resumes_it(
    broker: Brokerage,
) -> None:
    broker.create_queue("q", "{slot:1}")
    broker.pause("q")
    told = "queue `q` is paused: `grass resume q` lets its jobs start"
    assert hint(broker, queue="q") == told


def test_everything_paused_is_told_once(broker: Brokerage) -> None:
    broker.create_queue("q", "{slot:1}")
    broker.pause("q")
    broker.pause()
    told = "everything is paused: `grass resume` lets jobs start"
    assert hint(broker, queue="q") == told


def test_a_worker_that_is_away_is_told(broker: Brokerage) -> None:
    broker.join("b" * 16)
    assert hint(broker, worker="b" * 16) == ""
    broker.leave("b" * 16)
    assert hint(broker) == ""
    told = "no worker that may run it is connected: it waits for one"
    assert hint(broker, worker="b" * 16) == told
    broker.leave(WORKER)
    assert hint(broker) == told


def test_a_large_call_is_told_too(broker: Brokerage) -> None:
    broker.pause()
    call = broker.new_job("true")
    call.jobs = call.jobs * 2500
    arrival = broker.step(call)
    while not arrival.finished:
        broker.core.advance()
    assert "everything is paused" in arrival.reply.hint
