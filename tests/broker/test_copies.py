"""Two homes with one worker's id: nothing of the one is lost through the other."""

import pytest
from tests.support.brokerage import Brokerage
from tests.support.building import BOOT, WORKER, units

from grass.broker.core.calls import FromWorker
from grass.errors import Forbidden
from grass.link.messages import Exited, Hello, Report, Returned, Start, Started, Stop
from grass.model.amounts import WHOLE
from grass.model.lifecycle import JobState

FARM = "farm"
FOREIGN = f"{'f' * 16}.7.1"


class Farm:
    """A worker whose home was copied, with a job of the first home's."""

    def __init__(self, broker: Brokerage, **said: object) -> None:
        self.broker = broker
        self.call("one", **said)
        self.job = broker.enqueue(worker=FARM, retry_lost=3)
        assert broker.where(self.job) == FARM

    def call(self, instance: str, *running: int, **said: object) -> None:
        """Have one of the homes call."""
        reports = [self.broker.report(job) for job in running]
        fields = {"running": reports, "instance": instance, **said}
        self.broker.join(FARM, "{cpu:4}", **fields)

    def start(self) -> None:
        name = self.broker.name(self.job)
        self.broker.hear(Started(name, 7, self.broker.now_us), FARM)

    def number(self) -> int:
        """Give the attempt that counts."""
        return self.broker.state.attempts[self.job].number


@pytest.mark.parametrize("boot", [BOOT, "another boot"])
def test_what_the_other_home_runs_is_kept_out_of_reach(
    broker: Brokerage, boot: str
) -> None:
    farm = Farm(broker)
    farm.start()
    broker.leave(FARM)
    for _ in range(2):
        farm.call("two", boot=boot)
        broker.restart()
    assert (farm.number(), broker.job_state(farm.job)) == (1, JobState.RUNNING)
    worker = broker.state.workers[FARM]
    assert worker.is_apart(broker.name(farm.job))
    farm.call("one", farm.job)
    assert not broker.state.workers[FARM].is_apart(broker.name(farm.job))
    broker.hear(Exited(broker.name(farm.job), broker.now_us, 0), FARM)
    assert broker.job_state(farm.job) is JobState.SUCCEEDED


def test_a_start_on_its_way_to_the_other_home_goes_nowhere_else(
    broker: Brokerage,
) -> None:
    farm = Farm(broker)
    name = broker.name(farm.job)
    broker.leave(FARM)
    farm.call("two")
    assert not broker.said(Start)
    broker.hear(Returned(name, "recalled"), FARM)
    broker.hear(Exited(name, broker.now_us, 0), FARM)
    assert (farm.number(), broker.job_state(farm.job)) == (1, JobState.RUNNING)
    farm.call("one")
    assert [start.attempt for start in broker.said(Start)] == [name]


def test_each_home_answers_for_its_own(broker: Brokerage) -> None:
    farm = Farm(broker)
    farm.start()
    farm.call("two")
    second = broker.enqueue(worker=FARM, retry_lost=3)
    broker.hear(Started(broker.name(second), 8, broker.now_us), FARM)
    farm.call("one", farm.job)
    assert (farm.number(), broker.state.attempts[second].number) == (1, 1)
    farm.call("one")
    assert (farm.number(), broker.state.attempts[second].number) == (2, 1)
    farm.call("two")
    assert broker.state.attempts[second].number == 2


def test_a_lease_of_one_home_says_nothing_of_the_other(broker: Brokerage) -> None:
    farm = Farm(broker)
    farm.start()
    broker.leave(FARM)
    farm.call("two", lease_s=5.0)
    broker.leave(FARM)
    broker.pass_time(1)
    broker.pass_time(1000)
    assert farm.number() == 1


def test_a_stop_waits_for_the_home_that_has_the_job(broker: Brokerage) -> None:
    farm = Farm(broker)
    farm.start()
    broker.leave(FARM)
    farm.call("two")
    broker.cancel(farm.job)
    farm.call("one", farm.job)
    assert [stop.attempt for stop in broker.said(Stop)] == [broker.name(farm.job)]


def test_forgetting_the_worker_settles_all_of_it(broker: Brokerage) -> None:
    farm = Farm(broker)
    farm.start()
    broker.leave(FARM)
    farm.call("two")
    broker.leave(FARM)
    assert broker.forget(FARM).jobs == [farm.job]


def test_a_home_that_does_not_say_which_it_is_is_another(broker: Brokerage) -> None:
    farm = Farm(broker)
    farm.start()
    broker.leave(FARM)
    for _ in range(2):
        farm.call("", boot="another boot")
        assert (farm.number(), broker.job_state(farm.job)) == (1, JobState.RUNNING)
        broker.restart()
    second = broker.enqueue(worker=FARM, retry_lost=3)
    farm.call("")
    broker.hear(Started(broker.name(second), 8, broker.now_us), FARM)
    farm.call("one", farm.job)
    assert (farm.number(), broker.state.attempts[second].number) == (1, 1)


def test_a_home_that_never_says_which_it_is_stays_the_same(broker: Brokerage) -> None:
    broker.join(FARM, "{cpu:4}")
    job = broker.enqueue(worker=FARM, retry_lost=3)
    broker.hear(Started(broker.name(job), 7, broker.now_us), FARM)
    broker.join(FARM, "{cpu:4}")
    assert broker.state.attempts[job].number == 2


def test_a_worker_without_a_token_does_not_come_back(broker: Brokerage) -> None:
    farm = Farm(broker)
    hello = broker_hello(farm)
    broker.leave(FARM)
    broker.forget(FARM)
    with pytest.raises(Forbidden, match="no token belongs to this worker"):
        broker.call(hello)
    assert FARM not in broker.state.workers


def broker_hello(farm: Farm) -> FromWorker:
    """Give a hello as one that waits in the inbox."""
    found = farm.broker.state.workers[FARM].found
    hello = Hello(FARM, FARM, BOOT, found, [], [], instance="one")
    return FromWorker(FARM, hello, "10.0.0.7")


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


class Desk:
    """The worker in the broker's own daemon, with a job."""

    def __init__(self, broker: Brokerage) -> None:
        self.broker = broker
        self.call("one")
        self.job = broker.enqueue(retry_lost=3)
        broker.hear(Started(broker.name(self.job), 7, broker.now_us))

    def call(self, instance: str, *running: int, boot: str = BOOT) -> None:
        reports = [self.broker.report(job) for job in running]
        found = units("{cpu:4}")
        hello = Hello(WORKER, "desk", boot, found, reports, [], instance=instance)
        self.broker.hear(hello)

    def attempt(self) -> tuple[int, bool]:
        """Give the attempt that counts, and whether it is set apart."""
        attempt = self.broker.state.attempts[self.job]
        worker = self.broker.state.workers[WORKER]
        return attempt.number, worker.is_apart(self.broker.name(self.job))


@pytest.mark.parametrize("instance", ["two", ""])
def test_the_brokers_own_worker_has_no_copies(broker: Brokerage, instance: str) -> None:
    desk = Desk(broker)
    broker.restart()
    desk.call(instance, desk.job)
    assert desk.attempt() == (1, False)
    broker.restart()
    desk.call("three", boot="another boot")
    assert desk.attempt() == (2, False)


def test_what_was_set_apart_of_the_brokers_own_worker_is_settled(
    broker: Brokerage,
) -> None:
    desk = Desk(broker)
    worker = broker.state.workers[WORKER]
    worker.apart = {"one": [broker.name(desk.job)]}
    desk.call("two", boot="another boot")
    assert desk.attempt() == (2, False)
