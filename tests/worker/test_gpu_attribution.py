"""What of a GPU counts for which attempt."""

from grass.devices.readings import GpuProcess
from grass.model.amounts import GIB
from grass.worker.core.usage.gpu_attribution import (
    BY_DIFFERENCE,
    NOT_TOLD,
    GpuDivision,
    Holders,
)
from tests.worker.gpu_values import HALF, reading

ELSEWHERE = {"gpu": {"1": 10_000}}


def test_processes_count_for_their_attempts_and_strangers_for_none() -> None:
    processes = (
        GpuProcess(1, 3 * GIB, 30),
        GpuProcess(2, GIB, 10),
        GpuProcess(7, 2 * GIB, 5),
        GpuProcess(99, 9 * GIB, 20),
    )
    holders = Holders({"a": {1, 2}, "b": {7}}, {"a": HALF, "b": HALF})

    uses = GpuDivision().divide((reading(*processes, used=15 * GIB),), holders)

    assert (uses["a"].memory, uses["a"].utilization) == ({"0": 4 * GIB}, {"0": 40})
    assert (uses["b"].memory, uses["b"].utilization) == ({"0": 2 * GIB}, {"0": 5})


def test_an_attempt_that_holds_a_gpu_and_is_not_on_it_uses_nothing_of_it() -> None:
    uses = GpuDivision().divide((reading(),), Holders({"a": {1}}, {"a": HALF}))

    assert uses["a"].memory == {"0": 0}


def test_the_utilization_of_the_gpu_is_that_of_an_attempt_alone_on_it() -> None:
    on_it = GpuProcess(1, GIB)
    alone = Holders({"a": {1}, "b": {5}}, {"a": HALF, "b": ELSEWHERE})
    two = Holders({"a": {1}, "b": {5}}, {"a": HALF, "b": HALF})

    assert GpuDivision().divide((reading(on_it),), alone)["a"].utilization == {"0": 80}
    assert GpuDivision().divide((reading(on_it),), two)["a"].utilization == {}
    beside = reading(on_it, GpuProcess(99, GIB))
    assert GpuDivision().divide((beside,), alone)["a"].utilization == {}


def test_hidden_processes_are_measured_by_difference_when_a_job_is_alone() -> None:
    division = GpuDivision()
    division.divide((reading(used=GIB, pids_hidden=True),), Holders({}, {}))
    now = reading(GpuProcess(4711, 8 * GIB), used=9 * GIB, pids_hidden=True)

    alone = division.divide((now,), Holders({"a": {1}}, {"a": HALF}))["a"]
    two = division.divide(
        (now,), Holders({"a": {1}, "b": {2}}, {"a": HALF, "b": HALF})
    )["a"]

    assert (alone.memory, alone.note) == ({"0": 8 * GIB}, BY_DIFFERENCE)
    assert alone.utilization == {"0": 80}
    assert (two.memory, two.note) == ({}, NOT_TOLD)


def test_memory_that_is_not_told_of_a_process_is_measured_by_difference() -> None:
    division = GpuDivision()
    now = reading(GpuProcess(1, None), used=3 * GIB)

    use = division.divide((now,), Holders({"a": {1}}, {"a": HALF}))["a"]

    assert (use.memory, use.note) == ({"0": 3 * GIB}, BY_DIFFERENCE)


def test_the_memory_of_a_gpu_with_a_fault_is_still_its_jobs() -> None:
    failed = reading(GpuProcess(1, GIB), used=GIB, fault="lost from the bus")

    use = GpuDivision().divide((failed,), Holders({"a": {1}}, {"a": HALF}))["a"]

    assert use.memory == {"0": GIB}


def test_what_a_gpu_uses_without_jobs_is_not_learned_from_one_with_a_fault() -> None:
    division, nobody = GpuDivision(), Holders({}, {})
    division.divide((reading(used=GIB),), nobody)
    division.divide((reading(used=9 * GIB, fault="it hangs"),), nobody)

    hidden = reading(used=3 * GIB, pids_hidden=True)
    use = division.divide((hidden,), Holders({"a": {1}}, {"a": HALF}))["a"]

    assert use.memory == {"0": 2 * GIB}
