"""The journal of a broker whose workers come and go, with jobs that are forgotten."""

from tests.support.brokerage import Brokerage

COMINGS = ("worker-connected", "worker-disconnected")


def comings(broker: Brokerage) -> int:
    return len(broker.store.events(0, 10_000, None, COMINGS))


def flap(broker: Brokerage, times: int) -> None:
    for _ in range(times):
        broker.leave()
        broker.hello()


def ended_job(broker: Brokerage) -> int:
    job = broker.enqueue()
    broker.start(job)
    broker.exit(job)
    return job


def test_comings_of_workers_are_forgotten_with_the_jobs_of_their_time(
    broker: Brokerage,
) -> None:
    flap(broker, 20)
    old = ended_job(broker)
    flap(broker, 20)
    ended_job(broker)
    flap(broker, 3)
    broker.prune(old)
    assert comings(broker) == 2 * 3


def test_comings_stay_while_a_job_of_before_is_there(broker: Brokerage) -> None:
    broker.enqueue(hold=True)
    flap(broker, 20)
    broker.prune(ended_job(broker))
    assert comings(broker) == 2 * 20


def test_what_people_did_is_not_forgotten_with_jobs(broker: Brokerage) -> None:
    broker.pause()
    broker.resume()
    old = ended_job(broker)
    ended_job(broker)
    broker.prune(old)
    kinds = [one.kind for one in broker.store.events(0, 10, None, ())]
    assert kinds[:2] == ["paused", "resumed"]


def test_a_link_that_replaces_another_leaves_no_line(broker: Brokerage) -> None:
    known = comings(broker)
    for _ in range(5):
        broker.hello()
    assert comings(broker) == known
