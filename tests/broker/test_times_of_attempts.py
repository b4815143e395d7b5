"""When attempts began and ended, told by the broker's clock."""

from msgspec.structs import replace
from tests.support.brokerage import Brokerage
from tests.support.building import BOOT

from grass.link.messages import Exited, Hello, Report, Started
from grass.model.jobs.job import Attempt

FOREVER_S = 1e10


def attempt(broker: Brokerage, job: int) -> Attempt:
    return broker.state.attempts[job]


def report(broker: Brokerage, job: int, ran_s: float) -> Report:
    return replace(broker.report(job), started_at=1, ran_s=ran_s)


def test_a_start_is_counted_back_from_now(broker: Brokerage) -> None:
    job = broker.enqueue()
    broker.now_us += 100_000_000
    broker.hear(Started(broker.name(job), 7, 5, ran_s=30.0))
    began = attempt(broker, job).started_at
    assert began == broker.state.jobs[job].started_at == broker.now_us - 30_000_000
    broker.now_us += 50_000_000
    broker.hello([report(broker, job, 1.0)])
    assert attempt(broker, job).started_at == began


def test_a_start_that_only_a_hello_tells_of_is_counted_back_too(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    broker.now_us += 100_000_000
    broker.hello([report(broker, job, 20.0)])
    assert attempt(broker, job).started_at == broker.now_us - 20_000_000


def test_no_attempt_began_before_it_was_placed(broker: Brokerage) -> None:
    job = broker.enqueue()
    placed_at = attempt(broker, job).started_at
    broker.now_us += 100_000_000
    broker.hear(Started(broker.name(job), 7, 5, ran_s=FOREVER_S))
    assert attempt(broker, job).started_at == placed_at


def test_no_attempt_begins_after_a_clock_that_was_set_back(broker: Brokerage) -> None:
    job = broker.enqueue()
    broker.now_us -= 500_000_000
    broker.hear(Started(broker.name(job), 7, 5))
    assert attempt(broker, job).started_at == broker.now_us


def test_an_end_has_the_brokers_time_and_the_keepers_duration(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    broker.start(job)
    broker.now_us += 9_000_000
    broker.hear(Exited(broker.name(job), 5, 0, ran_s=2.5))
    found = broker.job(job)
    (ended,) = found.attempts
    assert ended.finished_at == found.job.finished_at == broker.now_us
    assert ended.ran_s == 2.5
    assert broker.store.runtimes(found.job.name, 5) == [2.5]


def test_a_duration_that_was_not_measured_is_that_between_the_times(
    broker: Brokerage,
) -> None:
    job = broker.enqueue()
    broker.start(job)
    began = attempt(broker, job).started_at
    broker.now_us += 9_000_000
    broker.exit(job, None, lost=True)
    assert broker.job(job).attempts[0].ran_s == (broker.now_us - began) / 1e6


def test_an_exit_of_an_earlier_boot_is_recorded_with_its_duration(
    broker: Brokerage,
) -> None:
    job = broker.enqueue(retry_lost=3)
    name, found = broker.name(job), broker.state.workers["worker-1"].found
    begun, ended = Started(name, 7, 5, ran_s=4.0), Exited(name, 5, 3, ran_s=4.0)
    broker.now_us += 60_000_000
    hello = Hello("worker-1", "desk", f"{BOOT}'", found, [], [ended], [begun])
    broker.hear(hello)
    (one,) = broker.job(job).attempts
    assert (one.exit_code, one.ran_s) == (3, 4.0)
    assert one.started_at == broker.now_us - 4_000_000
