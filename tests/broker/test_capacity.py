"""Units that come, go and drain while jobs run."""

from collections.abc import Callable

import pytest
from tests.support.brokerage import ME, Brokerage
from tests.support.building import WORKER

from grass.broker.core.calls import (
    AddUnits,
    AnyCall,
    RemoveUnit,
    SetUnitDrained,
    WorkerGone,
)
from grass.errors import GrassError, NeverFits, NotFound, Refused
from grass.link.messages import KnownUnits
from grass.model.amount_text import WHOLE
from grass.model.jobs.lifecycle import JobState

Meanwhile = Callable[[Brokerage], None]
MakeBroker = Callable[[str], Brokerage]

GPUS = "{cpu:4, gpu:2, vram:{'0':24,'1':24}}"
ONE_GPU = "{gpu:1}"


@pytest.fixture
def gpus(broker_of: MakeBroker) -> Brokerage:
    return broker_of(GPUS)


def unit_of(broker: Brokerage, job: int, kind: str = "gpu") -> list[str]:
    return sorted(broker.state.attempts[job].allocation[kind])


def refused(broker: Brokerage, error: type[GrassError], call: AnyCall) -> str:
    return broker.refused(error, lambda: broker.call(call))


def test_added_units_start_what_waits_and_the_worker_is_told(
    gpus: Brokerage, meanwhile: Meanwhile
) -> None:
    jobs = [gpus.enqueue(require=ONE_GPU) for _ in range(3)]
    meanwhile(gpus)
    assert gpus.job_state(jobs[2]) is JobState.QUEUED
    gpus.add_units("{gpu:{'4':1}, vram:{'4':24}}")
    assert gpus.started_jobs() == [jobs[2]]
    assert unit_of(gpus, jobs[2]) == ["4"]
    (told,) = gpus.said(KnownUnits)
    assert told.capacity["gpu"] == {"0": WHOLE, "1": WHOLE, "4": WHOLE}
    meanwhile(gpus)
    assert unit_of(gpus, jobs[2]) == ["4"]


def test_added_units_are_there_after_a_restart(
    gpus: Brokerage, meanwhile: Meanwhile
) -> None:
    gpus.add_units("{gpu:{'4':1}, license:[2]}")
    meanwhile(gpus)
    job = gpus.enqueue(require="{gpu:3, license:2}")
    assert unit_of(gpus, job) == ["0", "1", "4"]


def test_what_is_there_already_is_not_added(gpus: Brokerage) -> None:
    gpus.create_queue("q1", "{printer:1}")
    gpus.add_units("{license:1}")
    for capacity in (
        {"gpu": {"1": WHOLE}},
        {"license": {"0": WHOLE}},
        {"printer": {"0": WHOLE}},
        {"gpu": {"7": WHOLE, "0": WHOLE}},
    ):
        text = refused(gpus, Refused, AddUnits(ME, WORKER, capacity))
        assert "is there already" in text


def test_an_added_unit_can_be_removed_and_added_again(
    gpus: Brokerage, meanwhile: Meanwhile
) -> None:
    gpus.add_units("{gpu:{'4':1}}")
    meanwhile(gpus)
    gpus.remove_unit("gpu", "4")
    assert gpus.said(KnownUnits)[0].capacity["gpu"] == {"0": WHOLE, "1": WHOLE}
    with pytest.raises(NeverFits):
        gpus.enqueue(require="{gpu:3}")
    meanwhile(gpus)
    gpus.add_units("{gpu:{'4':1}}")
    assert len(unit_of(gpus, gpus.enqueue(require="{gpu:3}"))) == 3


def test_a_held_unit_that_is_removed_leaves_at_its_holders_end(
    gpus: Brokerage, meanwhile: Meanwhile
) -> None:
    gpus.add_units("{gpu:{'4':1}}")
    jobs = [gpus.enqueue(require=ONE_GPU) for _ in range(4)]
    assert unit_of(gpus, jobs[2]) == ["4"]
    gpus.start(jobs[2])
    gpus.remove_unit("gpu", "4")
    assert gpus.job_state(jobs[2]) is JobState.RUNNING
    meanwhile(gpus)
    gpus.exit(jobs[2])
    assert gpus.job_state(jobs[3]) is JobState.QUEUED
    assert "4" not in gpus.state.scheduler.free(WORKER)["gpu"]
    gpus.exit(jobs[0])
    assert gpus.started_jobs() == [jobs[3]]


def test_a_device_is_removed_with_its_memory(gpus: Brokerage) -> None:
    gpus.add_units("{gpu:{'4':1}, vram:{'4':24}}")
    gpus.remove_unit("gpu", "4")
    assert gpus.state.workers[WORKER].added == {}
    assert "4" not in gpus.state.scheduler.free(WORKER)["vram"]


def test_units_that_were_found_or_declared_are_drained_not_removed(
    gpus: Brokerage,
) -> None:
    gpus.create_queue("q1", "{printer:1}")
    text = refused(gpus, Refused, RemoveUnit(ME, WORKER, "gpu", "0"))
    assert "found on the machine" in text
    text = refused(gpus, Refused, RemoveUnit(ME, WORKER, "printer", "0"))
    assert "declared by a queue" in text
    refused(gpus, NotFound, RemoveUnit(ME, WORKER, "gpu", "9"))
    refused(gpus, NotFound, RemoveUnit(ME, "nobody", "gpu", "0"))


def test_a_removed_unit_that_a_queue_declares_stays_and_that_is_said(
    gpus: Brokerage,
) -> None:
    gpus.add_units("{gpu:{'4':1}}")
    gpus.create_queue("q1", "{gpu:{'4':1}}")
    done = gpus.remove_unit("gpu", "4")
    assert done.warnings == ["gpu:4 stays: a queue declares it"]


def test_nothing_new_starts_on_a_drained_unit(
    gpus: Brokerage, meanwhile: Meanwhile
) -> None:
    first, second = (gpus.enqueue(require=ONE_GPU) for _ in range(2))
    gpus.start(first)
    gpus.start(second)
    assert unit_of(gpus, first) == ["0"]
    assert gpus.drain("gpu", "0").changed
    assert gpus.state.workers[WORKER].drained == {"gpu": ["0"], "vram": ["0"]}
    waits = gpus.enqueue(require=ONE_GPU)
    meanwhile(gpus)
    assert gpus.job_state(first) is JobState.RUNNING
    gpus.exit(first)
    assert gpus.job_state(waits) is JobState.QUEUED
    meanwhile(gpus)
    gpus.exit(second)
    assert unit_of(gpus, waits) == ["1"]
    last = gpus.enqueue(require=ONE_GPU)
    assert gpus.job_state(last) is JobState.QUEUED
    gpus.drain("gpu", "0", False)
    assert gpus.started_jobs() == [last]
    assert gpus.state.workers[WORKER].drained == {}


@pytest.mark.parametrize("kind", ["gpu", "vram"])
def test_a_device_and_its_memory_drain_together(
    gpus: Brokerage, kind: str, meanwhile: Meanwhile
) -> None:
    gpus.drain(kind, "0")
    meanwhile(gpus)
    share = gpus.enqueue(require="{gpu:0.2}")
    jobs = [gpus.enqueue(require="{vram:'8G'}") for _ in range(2)]
    assert [unit_of(gpus, job, "vram") for job in jobs] == [["1"], ["1"]]
    assert unit_of(gpus, share) == ["1"]
    gpus.drain("vram" if kind == "gpu" else "gpu", "0", False)
    meanwhile(gpus)
    both = gpus.enqueue(require="{gpu:1, vram:'20G'}")
    assert unit_of(gpus, both) == unit_of(gpus, both, "vram") == ["0"]


def test_draining_twice_is_fine_and_says_that_nothing_changed(
    gpus: Brokerage,
) -> None:
    assert gpus.drain("cpu", "1").changed
    assert not gpus.drain("cpu", "1").changed
    assert gpus.state.workers[WORKER].drained == {"cpu": ["1"]}
    assert gpus.drain("cpu", "1", False).changed
    assert not gpus.drain("cpu", "1", False).changed


def test_unknown_units_are_not_drained(gpus: Brokerage) -> None:
    refused(gpus, NotFound, SetUnitDrained(ME, WORKER, "gpu", "9", True))
    refused(gpus, NotFound, SetUnitDrained(ME, WORKER, "fax", "0", True))
    refused(gpus, NotFound, SetUnitDrained(ME, "nobody", "gpu", "0", True))


def test_a_job_that_needs_drained_units_waits_for_them(
    gpus: Brokerage, meanwhile: Meanwhile
) -> None:
    gpus.drain("gpu", "0")
    job = gpus.enqueue(require="{gpu:2}")
    assert gpus.job_state(job) is JobState.QUEUED
    meanwhile(gpus)
    assert gpus.job_state(job) is JobState.QUEUED
    gpus.drain("gpu", "0", False)
    assert gpus.started_jobs() == [job]


def test_a_removed_unit_takes_its_drain_along(gpus: Brokerage) -> None:
    gpus.add_units("{gpu:{'4':1}}")
    gpus.drain("gpu", "4")
    gpus.remove_unit("gpu", "4")
    assert gpus.state.workers[WORKER].drained == {}
    gpus.add_units("{gpu:{'4':1}}")
    assert len(unit_of(gpus, gpus.enqueue(require="{gpu:3}"))) == 3


@pytest.mark.parametrize("restart", [True, False])
def test_units_are_changed_while_the_worker_is_away(
    gpus: Brokerage, restart: bool
) -> None:
    job = gpus.enqueue(require=ONE_GPU)
    gpus.start(job)
    gpus.drain("gpu", "0")
    report = gpus.report(job)
    if restart:
        gpus.restart()
    else:
        gpus.call(WorkerGone(WORKER))
    gpus.drain("gpu", "0", False)
    gpus.drain("gpu", "1")
    gpus.add_units("{gpu:{'4':1}}")
    gpus.hello([report])
    gpus.exit(job)
    jobs = [gpus.enqueue(require=ONE_GPU) for _ in range(3)]
    assert sorted(unit_of(gpus, one)[0] for one in jobs[:2]) == ["0", "4"]
    assert gpus.job_state(jobs[2]) is JobState.QUEUED
