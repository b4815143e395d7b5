"""When the worker looks at its attempts, and what comes of it."""

from grass.devices.readings import GpuProcess
from grass.model.amounts import GIB
from grass.model.usage.attempt_usage import ResourceUse, UnitUse
from grass.worker.core.usage.samples import ProcessUse
from tests.worker.gpu_values import reading, running
from tests.worker.lab import FIRST, SECOND, ready


def use(memory: int, cpu_s: float = 0.0, pid: int = 7) -> ProcessUse:
    return ProcessUse(frozenset({pid}), memory, cpu_s)


def test_looks_are_frequent_at_first_then_every_second_and_rare_without_jobs() -> None:
    lab = ready()
    table = lab.core.usage
    assert table.pause_s(100.0, has_gpus=False) is None
    assert table.pause_s(100.0, has_gpus=True) == 0.0
    table.sampled(100.0, (), {})
    assert table.pause_s(100.0, has_gpus=True) == 10.0

    running(lab)

    # Many have ended before they are looked at for the first time.
    assert table.pause_s(100.0, has_gpus=True) == 0.3
    assert table.due(100.1) == {}
    table.sampled(100.3, (), {FIRST: use(1)})
    assert round(table.pause_s(100.3, has_gpus=True) or 0, 2) == 0.1
    table.sampled(109.9, (), {FIRST: use(1)})
    assert round(table.pause_s(109.95, has_gpus=False) or 0, 2) == 0.05
    table.sampled(110.5, (), {FIRST: use(1)})
    assert table.pause_s(110.5, has_gpus=False) == 1.0

    lab.keeper("exited", id=FIRST, code=0)
    assert table.pause_s(110.5, has_gpus=False) is None
    table.watch(110.5)
    assert table.pause_s(110.5, has_gpus=True) == 1.0
    assert table.pause_s(121.0, has_gpus=True) == 0.0


def test_between_two_seconds_only_young_attempts_are_looked_at() -> None:
    lab = ready(2)
    running(lab, FIRST, since=50.0)
    lab.start(SECOND, {"cpu": {"1": 10_000}})
    lab.keeper("started", id=SECOND, pid=8, ticks=9, at=5, since=100.0)
    table = lab.core.usage

    assert table.due(101.0).keys() == {FIRST, SECOND}
    table.sampled(101.0, (), {FIRST: use(5), SECOND: use(6, pid=8)})

    assert table.due(101.1).keys() == {SECOND}
    sample = table.sampled(101.1, (), {SECOND: use(7, pid=8)})
    # The processes of the other one are no strangers meanwhile.
    assert sample.attempts[FIRST].pids == {7}
    assert table.due(102.0).keys() == {FIRST, SECOND}


def test_processes_that_are_costly_to_look_at_are_looked_at_less_often() -> None:
    lab = ready()
    running(lab, since=50.0)
    table = lab.core.usage
    assert table.due(101.0).keys() == {FIRST}
    assert table.needs_gpus({}, 101.0)
    table.sampled(101.0, (reading(),), {FIRST: use(5)})

    table.took(1, 0.003)

    assert table.due(102.0) == {}
    assert table.needs_gpus({}, 102.0)
    gpu = reading(GpuProcess(7, 3 * GIB), used=3 * GIB)
    table.sampled(102.0, (gpu,), {})
    # What it uses of a GPU is taken in all the same.
    assert table.of(FIRST).peak.gpus["0"].memory == 3 * GIB  # type: ignore[union-attr]
    assert table.due(104.0).keys() == {FIRST}
    table.took(1, 1.0)
    assert table.due(109.0).keys() == {FIRST}


def test_the_most_that_was_used_goes_with_the_exit() -> None:
    lab = ready()
    running(lab)
    table = lab.core.usage
    gpu = reading(GpuProcess(7, 3 * GIB), used=3 * GIB)
    table.sampled(101.0, (gpu,), {FIRST: use(500, 0.5)})
    table.sampled(102.0, (reading(),), {FIRST: use(300, 2.5)})

    now = table.of(FIRST)
    assert now is not None
    assert (now.now.memory, now.now.cpu) == (300, 2.0)  # type: ignore[union-attr]
    (exited,) = lab.keeper("exited", id=FIRST, code=0).to_broker

    peak = exited.peak
    assert (peak.memory, peak.cpu) == (500, 2.0)
    assert peak.gpus["0"].memory == 3 * GIB
    assert table.of(FIRST) is None
    (points,) = table.take_points().values()
    assert [(one.at_s, one.memory) for one in points] == [(1.0, 500), (2.0, 300)]
    assert table.take_points() == {}


def test_an_attempt_that_was_never_looked_at_has_no_peak() -> None:
    lab = ready()
    running(lab)

    (exited,) = lab.keeper("exited", id=FIRST, code=0).to_broker

    assert exited.peak is None


def test_what_an_earlier_daemon_measured_counts() -> None:
    lab = ready()
    running(lab, since=10.0)
    table = lab.core.usage
    table.sampled(101.0, (), {FIRST: use(500, 90.0)})

    table.recover(FIRST, ResourceUse(900, 4.0, {"0": UnitUse(5, 6.0)}))
    table.sampled(102.0, (), {FIRST: use(600, 91.0)})

    known = table.of(FIRST)
    assert known is not None
    assert known.peak == ResourceUse(900, 4.0, {"0": UnitUse(5, 6.0)})
    # Of the time before the restart no rate is known.
    assert known.cpu == 1.0


def test_histories_are_in_the_workers_own_folder_only() -> None:
    lab = ready()
    lab.start(output="/home/me/x.log")
    started = lab.keeper("started", id=FIRST, pid=7, ticks=9, at=5, since=1.0)

    assert lab.core.usage.file_of(FIRST) == "/out/p/n/1/1.usage"
    assert started.to_broker[0].usage == "/out/p/n/1/1.usage"


def test_a_history_is_beside_the_output_that_grass_named() -> None:
    lab = ready()
    running(lab)

    assert lab.core.usage.file_of(FIRST) == "/out/p/n/1/1.usage"
