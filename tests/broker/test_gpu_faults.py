"""A GPU with a fault takes no job until it works and somebody has acknowledged that."""

from collections.abc import Callable

import pytest
from msgspec import structs
from tests.support.brokerage import Brokerage
from tests.support.building import BOOT, WORKER, units

from grass.broker.core.workers.gpu_faults import MAX_MISSING
from grass.errors import Refused
from grass.link.messages import Hello, Withheld
from grass.model.jobs.lifecycle import JobState
from grass.model.worker import FoundUnits, GpuFault, Unit

GPUS = "{cpu:2, gpu:2, vram:{'0':80,'1':80}}"
LOST = "it is lost from the bus"
FAILED, WORKS, ACKNOWLEDGED = "gpu-failed", "gpu-works", "gpu-acknowledged"

Meanwhile = Callable[[Brokerage], None]


@pytest.fixture
def broker(broker_of: Callable[[str], Brokerage]) -> Brokerage:
    return broker_of(GPUS)


def found(**uuids: str) -> FoundUnits:
    """Return units of which GPUs have these uuids, by name: `_0="a"`."""
    listed = {name[1:]: uuid for name, uuid in uuids.items()}
    made = units(GPUS)
    for kind in ("gpu", "vram"):
        amounts = {name: one.amount for name, one in made[kind].items()}
        most = max(amounts.values())
        made[kind] = {
            name: Unit(most, {"uuid": uuid, "index": 0} if kind == "gpu" else {})
            for name, uuid in listed.items()
        }
    return made


def connect(broker: Brokerage, listed: FoundUnits, **faults: str) -> None:
    told = Withheld(faults={name[1:]: why for name, why in faults.items()})
    broker.hear(Hello(WORKER, "desk", BOOT, listed, [], [], withheld=told))


def events(broker: Brokerage) -> list[str]:
    wanted = (FAILED, WORKS, ACKNOWLEDGED, "drained", "undrained")
    return [event.kind for event in broker.store.events(0, 100, None, wanted)]


def the_fault(broker: Brokerage) -> GpuFault:
    [fault] = broker.state.workers[WORKER].gpu_faults.values()
    return fault


def start_two(broker: Brokerage) -> list[int]:
    return [broker.enqueue(require="{gpu:1}") for _ in range(2)]


def gpu_of(broker: Brokerage, job: int) -> str:
    [unit] = broker.state.attempts[job].allocation["gpu"]
    return unit


def test_a_gpu_that_works_again_takes_jobs_once_a_person_has_acknowledged_it(
    broker: Brokerage,
) -> None:
    broker.hear(Withheld(faults={"0": LOST}))
    jobs = start_two(broker)
    assert broker.running() == jobs[:1]
    assert gpu_of(broker, jobs[0]) == "1"
    broker.hear(Withheld())
    broker.pass_time(100_000)
    assert broker.running() == jobs[:1]
    assert the_fault(broker).works_since is not None
    assert broker.drain("gpu", "0", drained=False).changed
    assert broker.running() == jobs
    assert not broker.state.workers[WORKER].gpu_faults
    assert events(broker) == [FAILED, WORKS, ACKNOWLEDGED]


def test_one_that_was_acknowledged_takes_jobs_as_soon_as_it_works(
    broker: Brokerage,
) -> None:
    broker.hear(Withheld(faults={"0": LOST}))
    done = broker.drain("gpu", "0", drained=False)
    assert done.changed
    [warning] = done.warnings
    assert warning.startswith(f"gpu:0 still has a fault: {LOST}; it is used again when")
    jobs = start_two(broker)
    assert broker.running() == jobs[:1]
    assert not broker.drain("gpu", "0", drained=False).changed
    broker.hear(Withheld())
    assert broker.running() == jobs
    assert events(broker) == [FAILED, ACKNOWLEDGED, WORKS]


def test_another_fault_has_to_be_acknowledged_too(broker: Brokerage) -> None:
    broker.hear(Withheld(faults={"0": "Xid 79: it fell off the bus"}))
    broker.drain("gpu", "0", drained=False)
    broker.hear(Withheld(faults={"0": LOST}))
    broker.hear(Withheld())
    assert (the_fault(broker).reason, the_fault(broker).unit) == (LOST, "0")


def test_the_rule_acknowledges_what_has_worked_for_long_enough(
    broker: Brokerage,
) -> None:
    broker.state.daemon.acknowledge_s = 600.0
    broker.hear(Withheld(faults={"0": LOST}))
    broker.pass_time(10_000)
    jobs = start_two(broker)
    broker.hear(Withheld())
    at = broker.core.next_time()
    assert at == the_fault(broker).works_since + 600_000_000  # type: ignore[operator]
    broker.pass_time(590)
    assert broker.running() == jobs[:1]
    broker.pass_time(11)
    assert broker.running() == jobs
    assert events(broker) == [FAILED, WORKS, ACKNOWLEDGED]


def test_a_gpu_that_only_did_not_answer_is_back_with_its_answer(
    broker: Brokerage,
) -> None:
    silence = "it does not answer in time"
    broker.hear(Withheld(faults={"0": silence}, passing=frozenset("0")))
    jobs = start_two(broker)
    assert broker.running() == jobs[:1]
    broker.hear(Withheld())
    assert broker.running() == jobs
    assert events(broker) == [FAILED, WORKS]


def test_silence_does_not_excuse_a_gpu_that_was_lost(broker: Brokerage) -> None:
    broker.hear(Withheld(faults={"0": "quiet"}, passing=frozenset("0")))
    broker.hear(Withheld(faults={"0": LOST}))
    broker.hear(Withheld(faults={"0": "quiet"}, passing=frozenset("0")))
    broker.hear(Withheld())
    assert the_fault(broker).reason == LOST


def test_no_restart_forgets_a_fault(broker: Brokerage, meanwhile: Meanwhile) -> None:
    broker.hear(Withheld(faults={"0": LOST}))
    meanwhile(broker)
    jobs = start_two(broker)
    assert broker.running() == jobs[:1]
    broker.leave()
    broker.hello()
    assert broker.running() == jobs[:1]
    # The first hello of a worker that has not looked yet says nothing of faults.
    assert the_fault(broker).works_since is None
    broker.hear(Withheld())
    assert the_fault(broker).works_since is not None
    assert broker.running() == jobs[:1]


def test_a_gpu_that_the_worker_lists_no_more_stays_until_it_works(
    broker: Brokerage,
) -> None:
    both = found(_0="a", _1="b")
    connect(broker, both, _0=LOST)
    broker.restart()
    connect(broker, found(_1="b"))
    worker = broker.state.workers[WORKER]
    assert worker.found["gpu"]["0"].details == {"uuid": "a"}
    assert sorted(worker.found["vram"]) == ["0", "1"]
    jobs = start_two(broker)
    assert [gpu_of(broker, one) for one in broker.running()] == ["1"]
    connect(broker, both)
    assert the_fault(broker).works_since is not None
    broker.drain("gpu", "0", drained=False)
    assert broker.running() == jobs


def test_it_does_not_take_the_name_of_a_gpu_that_works(broker: Brokerage) -> None:
    connect(broker, found(_0="a", _1="b"), _0=LOST)
    # The machine was started again, and counts the GPUs that are left.
    connect(broker, found(_0="b"))
    gpus = broker.state.workers[WORKER].found["gpu"]
    assert {name: one.details["uuid"] for name, one in gpus.items()} == {
        "0": "b",
        "1": "a",
    }
    jobs = start_two(broker)
    assert [gpu_of(broker, one) for one in broker.running()] == ["0"]
    connect(broker, found(_0="a", _1="b"))
    assert the_fault(broker).unit == "0"
    broker.drain("gpu", "0", drained=False)
    assert broker.running() == jobs


def test_gpus_that_a_worker_invents_are_not_kept_without_end(
    broker: Brokerage,
) -> None:
    for number in range(MAX_MISSING + 10):
        connect(broker, found(_0=f"gpu-{number}"), _0=LOST)
    worker = broker.state.workers[WORKER]
    assert len(worker.gpu_faults) == len(worker.found["gpu"]) == MAX_MISSING + 1


def test_one_that_vanishes_before_it_was_acknowledged_does_not_work(
    broker: Brokerage,
) -> None:
    connect(broker, found(_0="a", _1="b"), _0=LOST)
    connect(broker, found(_0="a", _1="b"))
    connect(broker, found(_1="b"))
    assert the_fault(broker).works_since is None


def test_a_gpu_that_was_taken_out_is_removed_by_a_person(broker: Brokerage) -> None:
    connect(broker, found(_0="a", _1="b"), _0=LOST)
    with pytest.raises(Refused, match="is still listed by its worker"):
        broker.remove_unit("gpu", "0")
    connect(broker, found(_1="b"))
    broker.remove_unit("gpu", "0")
    worker = broker.state.workers[WORKER]
    assert (list(worker.found["gpu"]), worker.gpu_faults) == (["1"], {})
    assert list(worker.found["vram"]) == ["1"]
    with pytest.raises(Refused, match="was found on the machine"):
        broker.remove_unit("gpu", "1")


def test_what_a_user_drained_stays_drained(broker: Brokerage) -> None:
    broker.hear(Withheld(faults={"0": "lost", "1": "lost"}))
    broker.drain("gpu", "1", drained=False)
    broker.drain("gpu", "1")
    broker.hear(Withheld())
    assert broker.state.workers[WORKER].drained == {"gpu": ["1"], "vram": ["1"]}
    job = broker.enqueue(require="{gpu:1}")
    assert broker.job_state(job) is JobState.QUEUED
    broker.drain("gpu", "1", drained=False)
    assert gpu_of(broker, job) == "1"


def test_resume_ends_both_a_drain_and_a_fault(broker: Brokerage) -> None:
    broker.drain("gpu", "0")
    broker.hear(Withheld(faults={"0": "lost"}))
    broker.hear(Withheld())
    broker.drain("gpu", "0", drained=False)
    jobs = start_two(broker)
    assert broker.running() == jobs


def test_a_fault_that_comes_and_goes_does_not_fill_the_journal(
    broker: Brokerage,
) -> None:
    for _ in range(50):
        broker.hear(Withheld(faults={"0": "quiet"}, passing=frozenset("0")))
        broker.hear(Withheld())
    # A step of this clock is a second.
    assert len(events(broker)) <= 6


def test_a_fault_goes_with_the_worker_that_is_forgotten(broker: Brokerage) -> None:
    broker.hear(Withheld(faults={"0": LOST}))
    broker.leave()
    broker.forget("desk")
    broker.hello()
    jobs = start_two(broker)
    assert broker.running() == jobs


def test_a_job_on_a_gpu_that_fails_runs_on(broker: Brokerage) -> None:
    [first, second] = start_two(broker)
    unit = gpu_of(broker, first)
    broker.hear(Withheld(faults={unit: LOST}))
    assert broker.running() == [first, second]
    third = broker.enqueue(require="{gpu:1}")
    broker.exit(first)
    assert broker.running() == [second]
    broker.exit(second)
    assert broker.running() == [third]


def test_the_time_is_that_of_the_beginning(broker: Brokerage) -> None:
    broker.hear(Withheld(faults={"0": LOST}))
    began = the_fault(broker)
    before = structs.asdict(began)
    broker.pass_time(100)
    broker.hear(Withheld(faults={"0": LOST}))
    assert structs.asdict(the_fault(broker)) == before
    assert the_fault(broker) is began
